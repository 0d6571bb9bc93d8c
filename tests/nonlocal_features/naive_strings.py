"""Global features of one labelling of one sentence, string by string: what the tensors must agree with."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from structperc.data.tag_schemes import spans

MARKS = ['"', "``", "''", "“", "”"]
WINDOWS = {"BO": [[-1, 0]], "TO": [[-1, 0, 1], [-2, -1, 0]], "BE": [[0, 1]], "TE": [[-1, 0, 1], [0, 1, 2]]}


class Sentence(NamedTuple):
    words: Sequence[str]
    labels: Sequence[str]
    lexicon: set[str]  # of case-folded words
    limit: int  # of quotes

    def w(self, i: int) -> str:
        return self.words[i] if i in range(len(self.words)) else "NULL"

    def f(self, i: int) -> str:
        types = ["A" if c in UPPER else "a" if c in LOWER else "0" if c in "0123456789" else c for c in self.words[i]]
        return "".join(one for one, _ in groupby(types))

    def g(self, i: int) -> str:
        if i not in range(len(self.words)):
            return "NULL"
        return self.f(i) + ("1" if self.words[i].casefold() in self.lexicon else "0")

    def t(self, i: int) -> str:
        return self.labels[i] if i in range(len(self.words)) else "NULL"


LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()


def strings(template: str, sentence: Sentence, typed: bool) -> set[str]:
    """All strings of one template."""
    found = set()
    if template in ("Q", "QF"):
        return set(QUOTES[template](sentence, typed))
    for kind, start, end in spans(sentence.labels):
        for string in ENTITIES[template](sentence, start, end - 1):
            found.add(f"{string}/{kind}" if typed else string)
    return found


def _whole(x: Sentence, s: int, e: int) -> Iterator[str]:
    yield "WE=" + " ".join(x.w(i) for i in range(s, e + 1))


def _shapes(x: Sentence, s: int, e: int) -> Iterator[str]:
    yield "FF=" + " ".join(x.f(i) for i in range(s, e + 1))


def _flagged(x: Sentence, s: int, e: int) -> Iterator[str]:
    yield "GF=" + " ".join(x.g(i) for i in range(s, e + 1))


def _last(x: Sentence, s: int, e: int) -> Iterator[str]:
    yield "LW=" + x.w(e)


def _lower(x: Sentence, s: int, e: int) -> Iterator[str]:
    yield "LWLC=1" if x.w(e)[0].islower() else "LWLC=0"


def _windows(name: str) -> Callable[[Sentence, int, int], Iterator[str]]:
    def found(x: Sentence, s: int, e: int) -> Iterator[str]:
        boundary = s if name[1] == "O" else e
        for number, window in enumerate(WINDOWS[name]):
            for code in range(2 ** len(window)):
                digits = f"{code:b}".rjust(len(window), "0")
                words = [(x.w if d == "0" else x.g)(boundary + t) for d, t in zip(digits, window, strict=True)]
                yield f"{name}{'2' if number else ''}{digits}={' '.join(words)}"

    return found


def _prefixes(x: Sentence, s: int, e: int) -> Iterator[str]:
    for last in range(s, e + 1):
        yield "PF=" + " ".join(x.f(i) for i in range(s, last + 1))


def _flagged_prefixes(x: Sentence, s: int, e: int) -> Iterator[str]:
    for last in range(s, e + 1):
        yield "PF2=" + " ".join(x.g(i) for i in range(s, last + 1))


def _suffixes(x: Sentence, s: int, e: int) -> Iterator[str]:
    for first in range(s, e + 1):
        yield "SF=" + " ".join(x.f(i) for i in range(e, first - 1, -1))


def _flagged_suffixes(x: Sentence, s: int, e: int) -> Iterator[str]:
    for first in range(s, e + 1):
        yield "SF2=" + " ".join(x.g(i) for i in range(e, first - 1, -1))


def _quotes(x: Sentence) -> Iterator[tuple[int, int, int]]:
    """(s, e, e') of each pair."""
    opened = None
    for i, word in enumerate(x.words):
        if word not in MARKS:
            continue
        if opened is None:
            opened = i
            continue
        inside = [j for j in range(opened + 1, i) if x.words[j][0].isalpha() or x.words[j][0].isdigit()]
        if inside:
            yield opened, i, inside[-1]
        opened = None


def _tags(x: Sentence, typed: bool) -> Iterator[str]:
    for s, e, _ in _quotes(x):
        if e - s < x.limit:
            yield "Q=" + " ".join(f"{x.g(i)} {x.t(i)}" for i in range(s, e + 1))
            yield "Q2=" + " ".join(f"{x.g(i)} {x.t(i)}" for i in range(s - 1, e + 2))


def _one_entity(x: Sentence, typed: bool) -> Iterator[str]:
    for s, e, last in _quotes(x):
        kinds = [kind for kind, start, end in spans(x.labels) if (start, end) == (s + 1, last + 1)]
        whole, kind = ("1", f"/{kinds[0]}" if typed else "") if kinds else ("0", "")
        upper = sum(word[0].isupper() for word in x.words[s + 1 : e])
        lower = sum(word[0].islower() for word in x.words[s + 1 : e])
        yield f"QF={whole} {upper} {lower} {x.g(s + 1)} {x.g(last)}{kind}"
        yield f"QF2={whole} {'1' if upper > lower else '0'} {x.g(s + 1)} {x.g(last)}{kind}"


ENTITIES: dict[str, Callable[[Sentence, int, int], Iterator[str]]] = {
    "WE": _whole,
    "FF": _shapes,
    "GF": _flagged,
    "LW": _last,
    "LWLC": _lower,
    **{name: _windows(name) for name in WINDOWS},
    "PF": _prefixes,
    "PF2": _flagged_prefixes,
    "SF": _suffixes,
    "SF2": _flagged_suffixes,
}
QUOTES: dict[str, Callable[[Sentence, bool], Iterator[str]]] = {"Q": _tags, "QF": _one_entity}
