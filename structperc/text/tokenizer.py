"""Tokens of running text with their character offsets, by rules: the first pattern that matches takes its characters.

Two sets of rules differ in what English corpora disagree about: in the CoNLL-2003 files and the Penn Treebank
third-quarter is one token, and so is the 1. of a list; in the English Web Treebank of Universal Dependencies third -
quarter are three, though e-mail is one. Words of languages that put no spaces between them stay together.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import final

from structperc.text.invisible import condense

Offsets = tuple[int, int]  # the token is text[start:end]
Cut = Callable[[str], Iterable[Offsets]]  # what may be given wherever a tokenizer is due

_BACK = re.compile(r"\\(\d)")
_SAME = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"})

_MONTHS = "Jan|Feb|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
_STATES = "Ala|Ariz|Ark|Calif|Colo|Conn|Del|Fla|Ga|Ill|Ind|Kan|Ky|La|Mass|Md|Mich|Minn|Mo|Mont|Neb|Nev|Okla|Ore|Pa|"
_STATES += "Tenn|Tex|Va|Vt|Wash|Wis|Wyo"
_TITLES = "Mr|Mrs|Ms|Messrs|Dr|Prof|St|Sen|Rep|Gov|Gen|Col|Capt|Cmdr|Maj|Lt|Sgt|Rev|Hon|Pres|Mt|Ft"
_NAMES = "Jr|Sr|Inc|Corp|Cos?|Ltd|Bros|Assn|Dept|Univ|Ave|Blvd|Rd|vs|etc|Ph\\.D"
TITLES = frozenset(_TITLES.split("|"))  # after which no sentence ends

_AT = r"(?<![^\W_])"  # no letter or digit before
_INITIALS = rf"{_AT}(?:[^\W\d_]\.){{2,}}"
_ENDS = r"""['")\]]*\s*(?:\Z|\n[^\S\n]*\n)"""  # of texts and paragraphs, where a full stop ends a sentence, too
_TAIL = r"""[^\s<>"]*[^\s<>"'.,;:!?)\]}]"""
_JOINED = r"(?:[.'&_]|(?<=\d)[,:/](?=\d))"  # within words and numbers
_CORE = r"(?:(?<![^\s(])(?:\+\.?|\.)(?=\d))?[^\W_]+"

WEB = (
    rf"(?:https?|ftp)://{_TAIL}|www\.{_TAIL}|[^\W_][\w.+-]{{0,63}}@[^\W_][\w-]*(?:\.[\w-]+)*|(?<!\w)[@#][^\W\d][\w.]*\w"
)
SMILEY = r"(?<!\S)[:;=]['^o-]?(?:[)(]+|[DPpO/|\\])(?!\w)"
ABBREVIATION = rf"{_AT}(?:{_MONTHS}|{_STATES}|{_TITLES}|{_NAMES}|ST|MR|DR)\.(?!\w|-\w|{_ENDS})|{_AT}[Nn]o\.(?=\s*\d)"
INITIAL = rf"{_AT}[^\W\d_]\.(?=\s+[^\W\d_])(?<=[^a-z]\.)"
SHORTENED = rf"'(?:em|til|cause|tis|twas)\b|{_AT}'\d0s\b"
MONEY = rf"{_AT}(?:US|C|A|HK|NZ|S)\$(?=\s*\d)"
OTHER = r"[\U0001f1e6-\U0001f1ff]{2}|\S"  # two letters of a flag are one character

LISTED = r"(?m:^)\d{1,2}\.(?=\s+\S)"
HYPHENATED = rf"(?:{_INITIALS}|{_CORE})(?:(?:{_JOINED}|\.?-)[^\W_]+)*"
DASHES = r"\.{2,}|-{2,}|``|''|([=*_~#<>+|^!?$])\1+"

_PREFIX = "e|re|co|non|anti|semi|mis|pre|un|over|vice|counter|ex|sub|mid|multi|inter|ultra|pro|post|bi|de|mini|x"
_PHONE = r"\d{1,3}-(?:\d{3}-)?\d{4}|\d{4}-\d\d-\d\d"
SEPARATED = rf"{_INITIALS}|{_AT}(?:{_PHONE})(?!\w)|(?i:{_AT}(?:{_PREFIX})-)?{_CORE}(?:{_JOINED}[^\W_]+)*"
RUNS = r"[.!?]{2,}|-{2,}|``|''|([=*_~#<>+|^$])\1+"

ENDINGS = r"(.+?)(n't|'(?:s|re|ve|ll|d|m))"
CONTRACTIONS = rf"{ENDINGS}|(can)(not)|(gon|wan)(na)|(got)(ta)"


@final
class RuleTokenizer:
    """A tokenizer made of regular expressions.

    A token is what the first of the patterns that matches at its place takes; white space, where none does, is
    between tokens. English clitics ('s, n't, ...) are tokens of their own.

    Args:
        patterns: tried in this order at each place; they see typographic apostrophes and hyphens as plain ones, and
            no invisible characters (see `text.invisible`), which stay with the character beside them.
        divided: tokens that match it as a whole, in upper or lower case, are two: the last group and what is before.
    """

    def __init__(self, patterns: Sequence[str], divided: str = ENDINGS) -> None:
        self.patterns, self.divided = tuple(patterns), divided
        self._divided = re.compile(divided, re.IGNORECASE)
        own, shift = [], 0
        for pattern in self.patterns:
            own.append(f"(?:{_BACK.sub(partial(_later, shift), pattern)})")
            shift += re.compile(pattern).groups
        self._token = re.compile("|".join(own))

    def __call__(self, text: str) -> list[Offsets]:
        """Return the offsets (start, end) of the tokens of a text, in their order.

        No token holds white space or consists of invisible characters.
        """
        condensed = condense(text)
        if condensed is None:
            return self._cut(text)
        visible, starts, ends = condensed
        return [(starts[first], ends[last - 1]) for first, last in self._cut(visible)]

    def _cut(self, text: str) -> list[Offsets]:
        """The tokens of a text without invisible characters."""
        found: list[Offsets] = []
        for match in self._token.finditer(text if text.isascii() else text.translate(_SAME)):
            start, end = match.span()
            inside = self._divided.fullmatch(match[0])
            if inside is not None and inside.lastindex is not None:
                at = start + inside.start(inside.lastindex)
                found.append((start, at))
                start = at
            found.append((start, end))
        return found


def _later(shift: int, reference: re.Match[str]) -> str:
    """A reference to a group of a pattern that stands after others, which have so many groups."""
    return f"\\{int(reference[1]) + shift}"


_CONLL = RuleTokenizer([WEB, SMILEY, LISTED, SHORTENED, ABBREVIATION, INITIAL, MONEY, HYPHENATED, DASHES, OTHER])
_UD = RuleTokenizer([WEB, SMILEY, SHORTENED, ABBREVIATION, INITIAL, MONEY, SEPARATED, RUNS, OTHER], CONTRACTIONS)


def conll_tokens(text: str) -> list[Offsets]:
    """Return the offsets of the tokens of a text as the files of CoNLL-2003 and the Penn Treebank are cut."""
    return _CONLL(text)


def ud_tokens(text: str) -> list[Offsets]:
    """Return the offsets of the tokens of a text as the English Web Treebank of Universal Dependencies is cut."""
    return _UD(text)


TOKENIZERS: dict[str, Cut] = {"conll": conll_tokens, "ud": ud_tokens}
