"""Rule-based tokenization and sentence splitting of running text, with character offsets.

`conll_tokens` and `ud_tokens` follow English corpora: third-quarter and the list number 1. are one token each in
CoNLL-2003 and the Penn Treebank, three and two in the English Web Treebank. `character_tokens` is for languages without
spaces between words, such as Chinese, Japanese and Thai.

Invisible characters (combining marks, zero-width spaces and joiners, direction marks, control characters, emoji skin
tones) belong to the visible character next to them; no token consists of them alone.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, final

_CATEGORIES = ("Mn", "Mc", "Me", "Cf", "Cc")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters by their category
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"  # joiners combine these
_PLAIN_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")


class Condensed(NamedTuple):
    """A text of V characters without invisible characters, and the original range of each character.

    A range includes the invisible characters that follow, and at the beginning of a word those before.
    """

    text: str
    starts: list[int]  # V
    ends: list[int]  # V


def invisible_characters(text: str) -> str:
    """Return the distinct invisible characters of a text, sorted."""
    if text.isascii() and not _PLAIN_CONTROLS.search(text):
        return ""
    return "".join(sorted(char for char in set(text) if _is_invisible(char)))


def strip_invisible(text: str) -> str:
    """Return a text without its invisible characters."""
    hidden = invisible_characters(text)
    return text.translate(dict.fromkeys(map(ord, hidden))) if hidden else text


def condense(text: str) -> Condensed | None:
    """Return a text without invisible characters, or None if it has none.

    Emoji connected by joiners (families, professions) are replaced by the first one.
    """
    hidden = invisible_characters(text)
    if not hidden:
        return None
    some = f"[{re.escape(hidden)}]"
    picture = f"[{_EMOJI}](?:\u200d[{_EMOJI}]|{some})*"
    characters = re.compile(rf"{some}*(?:(\s)|((?!{some})(?:{picture}|\S{some}*)))")
    kept, starts, ends = [], [], []
    attached = text.rstrip(hidden)  # trailing ones that follow white space match nothing
    for match in characters.finditer(text if attached and not attached[-1].isspace() else attached):
        start, end = match.span(1) if match[1] else match.span()
        kept.append(match[1] or match[2][0])
        starts.append(start)
        ends.append(end)
    return Condensed("".join(kept), starts, ends)


def _is_invisible(char: str) -> bool:
    if char.isspace():
        return False
    return unicodedata.category(char) in _CATEGORIES or char in _FILLERS or _SKIN_TONES[0] <= char <= _SKIN_TONES[2]


Offsets = tuple[int, int]  # the token is text[start:end]
Tokenizer = Callable[[str], Iterable[Offsets]]  # text -> offsets of its tokens

_BACK = re.compile(r"\\(\d)")
_SAME = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"})

_MONTHS = "Jan|Feb|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
_STATES = "Ala|Ariz|Ark|Calif|Colo|Conn|Del|Fla|Ga|Ill|Ind|Kan|Ky|La|Mass|Md|Mich|Minn|Mo|Mont|Neb|Nev|Okla|Ore|Pa|"
_STATES += "Tenn|Tex|Va|Vt|Wash|Wis|Wyo"
_TITLES = "Mr|Mrs|Ms|Messrs|Dr|Prof|St|Sen|Rep|Gov|Gen|Col|Capt|Cmdr|Maj|Lt|Sgt|Rev|Hon|Pres|Mt|Ft"
_NAMES = "Jr|Sr|Inc|Corp|Cos?|Ltd|Bros|Assn|Dept|Univ|Ave|Blvd|Rd|vs|etc|Ph\\.D"
TITLES = frozenset(_TITLES.split("|"))  # no sentence ends after them

_AT = r"(?<![^\W_])"  # no letter or digit before
_INITIALS = rf"{_AT}(?:[^\W\d_]\.){{2,}}"
_ENDS = r"""['")\]]*\s*(?:\Z|\n[^\S\n]*\n)"""  # end of a text or paragraph, where a full stop also ends a sentence
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

UNSPACED = (  # letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Han and kana
    "\u0e01-\u0edf\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
SPACED = rf"[^\W_{UNSPACED}]+(?:{_JOINED}[^\W_{UNSPACED}]+)*"

ENDINGS = r"(.+?)(n't|'(?:s|re|ve|ll|d|m))"
CONTRACTIONS = rf"{ENDINGS}|(can)(not)|(gon|wan)(na)|(got)(ta)"


@final
class RuleTokenizer:
    """A tokenizer of regular expressions.

    At each position the first matching pattern defines a token; positions without a match are skipped.

    Args:
        patterns: in order of priority, for texts with plain apostrophes and hyphens and without invisible characters.
        divided: pattern of tokens to split before the last group, ignoring case; by default English clitics ('s, n't,
            ...) are split off.

    Example:
        >>> RuleTokenizer([r"\\d", r"\\w+"])("12 ab!")
        [(0, 1), (1, 2), (3, 5)]
    """

    def __init__(self, patterns: Sequence[str], divided: str = ENDINGS) -> None:
        self.patterns, self.divided = tuple(patterns), divided
        self._divided = re.compile(divided, re.IGNORECASE)
        own, shift = [], 0
        for pattern in self.patterns:
            own.append(f"(?:{_BACK.sub(partial(_shift_reference, shift), pattern)})")
            shift += re.compile(pattern).groups
        self._token = re.compile("|".join(own))

    def __call__(self, text: str) -> list[Offsets]:
        """Return the offsets (start, end) of the tokens of a text."""
        condensed = condense(text)
        if condensed is None:
            return self._cut(text)
        visible, starts, ends = condensed
        return [(starts[first], ends[last - 1]) for first, last in self._cut(visible)]

    def _cut(self, text: str) -> list[Offsets]:
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


def _shift_reference(shift: int, reference: re.Match[str]) -> str:
    return f"\\{int(reference[1]) + shift}"


_CONLL = RuleTokenizer([WEB, SMILEY, LISTED, SHORTENED, ABBREVIATION, INITIAL, MONEY, HYPHENATED, DASHES, OTHER])
_UD = RuleTokenizer([WEB, SMILEY, SHORTENED, ABBREVIATION, INITIAL, MONEY, SEPARATED, RUNS, OTHER], CONTRACTIONS)
_CHARACTERS = RuleTokenizer([f"[{UNSPACED}]", SPACED, RUNS, OTHER])


def conll_tokens(text: str) -> list[Offsets]:
    """Return the offsets of the tokens of a text by the conventions of CoNLL-2003 and the Penn Treebank.

    Returns pairs (start, end), ascending; the token is text[start:end].
    """
    return _CONLL(text)


def ud_tokens(text: str) -> list[Offsets]:
    """Return offsets as `conll_tokens` does, by the conventions of the English Web Treebank (UD)."""
    return _UD(text)


def character_tokens(text: str) -> list[Offsets]:
    """Return the offsets of the letters of scripts without spaces between words, and of other words and numbers.

    The scripts are Han, kana, Thai, Lao, Burmese and Khmer; their spans need not be of whole words then.
    """
    return _CHARACTERS(text)


TOKENIZERS: dict[str, Tokenizer] = {"conll": conll_tokens, "ud": ud_tokens, "characters": character_tokens}


SentenceSplitter = Callable[[str, Sequence[Offsets]], list[int]]  # -> R + 1 token boundaries, from 0 to N

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n|\r[^\S\n]*\r|\u2029")
_LINE = re.compile(r"[\n\r\u2028\u2029]")
_TERMINATORS = re.compile(r"[.!?\u2026]*[.!?\u2026\u3002\uff01\uff1f\u0964\u061f]")
_WIDE_TERMINATORS = re.compile(r"[\u3002\uff01\uff1f]")
_CLOSES = re.compile(r"""["'\u2019\u201d\u00bb\u300d\u300f\uff09\u3011)\]}]+|''""")
_EITHER = ('"', "'", "''")  # opening or closing
_SHORT = re.compile(r"(?:\w+\.)+")
_INITIAL = re.compile(r"[^\W\d_]\.")
_STARTER = re.compile(  # words whose capital letter marks a sentence, not a name
    "An?|And|As|At|But|By|For|From|He|Her|His|However|I|If|In|Its?|Meanwhile|No|On|Our|She|So|Some|That|The|Then|There|"
    "These|They|This|Those|Though|To|We|What|When|While|With|You"
)


def rule_sentences(text: str, tokens: Sequence[Offsets]) -> list[int]:
    """Return the boundaries of sentences by punctuation, capital letters and empty lines.

    A sentence ends at an empty line, and after . ! ? ... and closing quotes or brackets, before white space that is not
    followed by a lower-case letter; after abbreviations only before words such as The, after titles and initials never.
    After a full-width terminator no white space is needed. `tokens`: the offsets of its N tokens. Returns the index of
    the first token of each sentence, and N.

    Example:
        >>> text = "Dr. Lind left. She sang."
        >>> rule_sentences(text, conll_tokens(text))
        [0, 4, 7]
    """
    hidden = dict.fromkeys(map(ord, invisible_characters(text)))
    words = [text[start:end].translate(hidden) for start, end in tokens]
    found, last = [0], 0  # of the present sentence: the last token other than closing quotes and brackets, or the first
    for t in range(1, len(tokens)):
        gap = text[tokens[t - 1][1] : tokens[t][0]].translate(hidden)
        ends = _is_end(words[last], words[t]) if gap else last == t - 1 and _is_wide_end(words[last], words[t])
        if ends or _BLANK_LINE.search(gap):
            found.append(t)
            last = t
        elif not _CLOSES.fullmatch(words[t]):
            last = t
    return [*found, len(tokens)] if tokens else [0]


def line_sentences(text: str, tokens: Sequence[Offsets]) -> list[int]:
    """Return the boundaries of sentences in a text with at most one sentence per line.

    `tokens`: the offsets of its N tokens. Returns the index of the first token of each sentence, and N.
    """
    gaps = (text[before[1] : after[0]] for before, after in pairwise(tokens))
    inner = [t for t, gap in enumerate(gaps, 1) if _LINE.search(gap)]
    return [0, *inner, len(tokens)] if tokens else [0]


def one_sentence(text: str, tokens: Sequence[Offsets]) -> list[int]:
    """Return the boundaries of a text as a single sentence.

    `tokens`: the offsets of its N tokens. Returns [0, N], or [0] without tokens.
    """
    return [0, len(tokens)] if tokens else [0]


SENTENCES: dict[str, SentenceSplitter] = {"rules": rule_sentences, "lines": line_sentences, "one": one_sentence}


def _is_end(last: str, following: str) -> bool:
    """Return True if a sentence ends after the word `last`, closing quotes and white space."""
    if following[:1].islower() or (_CLOSES.fullmatch(following) and following not in _EITHER):
        return False
    if _TERMINATORS.fullmatch(last):
        return True
    if not _SHORT.fullmatch(last) or last[:-1] in TITLES or _INITIAL.fullmatch(last):
        return False
    return _STARTER.fullmatch(following) is not None


def _is_wide_end(last: str, following: str) -> bool:
    """Return True if a sentence ends after the word `last` without white space."""
    if _TERMINATORS.fullmatch(following) or _CLOSES.fullmatch(following):
        return False
    return _WIDE_TERMINATORS.fullmatch(last) is not None


_EMPTY_LINE = re.compile(r"^[^\S\n]*\n", re.MULTILINE)
_CONTEXT = 16  # characters before an empty line, more than _LOOKAHEAD matches
_LOOKAHEAD = re.compile(  # tokens whose rules depend on the text after an empty line
    r"(?:\$|(?:^|[\W_])[^\W\d_]\.|[Nn]o\.|(?:^|[\n\r])\d{1,2}\.)\Z"  # money, initials, No. 5, items of a list
)


def paragraph_ends(text: str) -> Iterator[int]:
    """Yield positions after empty lines where a text of whole lines can be cut without changing tokens or sentences.

    For `conll_tokens`, `ud_tokens` and `character_tokens` with `rule_sentences` or `line_sentences`. `text`: whole
    lines.

    Yields:
        positions in the text, ascending.
    """
    hidden = dict.fromkeys(map(ord, invisible_characters(text)))
    before, space, at = "", "", 0  # the last visible characters before an empty line, and white space after them
    for match in _EMPTY_LINE.finditer(text):
        visible = before + space + text[at : match.start()].translate(hidden)
        stripped = visible.rstrip()
        before, space, at = stripped[-_CONTEXT:], visible[len(stripped) :][:_CONTEXT], match.start()
        if before and not _LOOKAHEAD.search(before):
            yield match.end()
