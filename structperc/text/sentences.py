"""Where sentences begin among the tokens of a text."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from structperc.text.invisible import invisible_characters
from structperc.text.tokenizer import TITLES, Offsets

Split = Callable[[str, Sequence[Offsets]], list[int]]  # -> R + 1 boundaries among N tokens, 0 and N among them

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n|\r[^\S\n]*\r|\u2029")
_LINE = re.compile(r"[\n\r\u2028\u2029]")
_ENDS = re.compile(r"[.!?\u2026]*[.!?\u2026\u3002\uff01\uff1f\u0964\u061f]")
_CLOSES = re.compile(r"""["'\u2019\u201d\u00bb)\]}]+|''""")
_EITHER = ('"', "'", "''")  # what opens, too
_SHORT = re.compile(r"(?:\w+\.)+")
_INITIAL = re.compile(r"[^\W\d_]\.")
_STARTER = re.compile(  # words in whose capital letter a sentence shows, rather than a name
    "An?|And|As|At|But|By|For|From|He|Her|His|However|I|If|In|Its?|Meanwhile|No|On|Our|She|So|Some|That|The|Then|There|"
    "These|They|This|Those|Though|To|We|What|When|While|With|You"
)


def rule_sentences(text: str, tokens: Sequence[Offsets]) -> list[int]:
    """Return the boundaries of sentences by punctuation, capital letters and empty lines.

    A sentence ends at an empty line, and after . ! ? ... with what closes there, if white space and then no small
    letter follows. After an abbreviation it ends only before words such as The, after titles and initials never.
    """
    hidden = dict.fromkeys(map(ord, invisible_characters(text)))
    words = [text[start:end].translate(hidden) for start, end in tokens]
    found = [0]
    for t in range(1, len(tokens)):
        gap = text[tokens[t - 1][1] : tokens[t][0]].translate(hidden)
        if gap and (_BLANK_LINE.search(gap) or _ended(words, found[-1], t)):
            found.append(t)
    return [*found, len(tokens)] if tokens else [0]


def line_sentences(text: str, tokens: Sequence[Offsets]) -> list[int]:
    """Return the boundaries of sentences in a text that has one sentence, or none, in each line."""
    gaps = (text[before[1] : after[0]] for before, after in pairwise(tokens))
    inner = [t for t, gap in enumerate(gaps, 1) if _LINE.search(gap)]
    return [0, *inner, len(tokens)] if tokens else [0]


def one_sentence(text: str, tokens: Sequence[Offsets]) -> list[int]:
    """Return the boundaries of a text that is a single sentence."""
    return [0, len(tokens)] if tokens else [0]


SENTENCES: dict[str, Split] = {"rules": rule_sentences, "lines": line_sentences, "one": one_sentence}


def _ended(words: Sequence[str], first: int, t: int) -> bool:
    """Whether the sentence that begins at `first` is over before token t, which white space separates from t - 1."""
    last = t - 1
    while last > first and _CLOSES.fullmatch(words[last]):
        last -= 1
    if words[t][:1].islower() or (_CLOSES.fullmatch(words[t]) and words[t] not in _EITHER):
        return False
    if _ENDS.fullmatch(words[last]):
        return True
    if not _SHORT.fullmatch(words[last]) or words[last][:-1] in TITLES or _INITIAL.fullmatch(words[last]):
        return False
    return _STARTER.fullmatch(words[t]) is not None
