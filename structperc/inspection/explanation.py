"""The parts of an explanation: candidates, the counts in which they differ, and the segments that changed."""

from typing import NamedTuple

from structperc.data.segments import Span

VERDICTS = {"repaired": "repaired", "damaged": "damaged", "changed": "wrong before and after"}


class Candidate(NamedTuple):
    """One labelling of the list, with its scores and its ranks, which count from 1."""

    labels: list[str]  # T names
    local_rank: int  # by local score: the rank before
    rank: int  # by total score: the rank after
    local: float  # local score
    total: float  # local + Explanation.same + its products, in this order
    is_gold: bool


class Term(NamedTuple):
    """A count of a non-local feature in which the candidates differ."""

    name: str  # "phrase(LOC,PER)"
    weight: float
    counts: list[float]  # of each candidate

    @property
    def products(self) -> list[float]:
        """The products weight * count of each candidate: what the feature adds to their total scores."""
        return [self.weight * count for count in self.counts]


class Change(NamedTuple):
    """Neighbouring segments of one sentence that the two decisions read differently; spans count from its start."""

    place: str  # "file:line" of the first token
    words: list[str]  # of the sentence
    before: list[Span]  # chosen by local score
    after: list[Span]  # chosen by total score
    gold: list[Span] | None  # those that overlap; None when gold is not known

    @property
    def extent(self) -> tuple[int, int]:
        """The first token of these segments, and the token after the last one."""
        both = [*self.before, *self.after]
        return min(span.start for span in both), max(span.end for span in both)

    @property
    def verdict(self) -> str:
        """Where gold is known: "repaired" (after is gold), "damaged" (before is gold) or "changed" (neither is)."""
        if self.gold == self.after:
            return "repaired"
        return "damaged" if self.gold == self.before else "changed"


class ChangedSentence(NamedTuple):
    """A sentence of the document, with its segments and what changed in it."""

    words: list[str]
    found: list[Span]  # chosen by total score; spans count from the sentence's start
    changes: list[Change]  # in their order


class Explanation(NamedTuple):
    """The decision on one document.

    The total score of a candidate is local + same + the sum of its products, in double precision; its rank is that
    of the tagger, in single precision, so that totals that differ by rounding alone may seem out of order.
    """

    row: int  # which sequence of the corpus, from 0
    place: str  # "file:line" of its first token
    n: int  # candidates there were, at most as many as asked for
    candidates: list[Candidate]  # by local rank: the local decision, the new one, some others, gold if it is there
    same: float  # what all of them get from counts in which they do not differ
    terms: list[Term]  # what moved the decision most comes first
    sentences: list[ChangedSentence]  # the document

    @property
    def changes(self) -> list[Change]:
        """The changes of all sentences, in their order."""
        return [change for sentence in self.sentences for change in sentence.changes]

    @property
    def before(self) -> int:
        """The number of the candidate that has the best local score."""
        return 0

    @property
    def after(self) -> int:
        """The number of the candidate that has the best total score."""
        return min(range(len(self.candidates)), key=lambda i: self.candidates[i].rank)


class Summary(NamedTuple):
    """How many decisions on a corpus were changed by non-local features, and whether for the better."""

    documents: int
    changed: int
    verdicts: dict[str, int] | None  # number of changes with each verdict; None without gold
    changes: int

    def line(self) -> str:
        """Return the counts as one sentence."""
        text = f"{self.changed} of {self.documents} documents changed, in {self.changes} places"
        if self.verdicts is None:
            return text
        return text + ": " + ", ".join(f"{count} {VERDICTS[name]}" for name, count in self.verdicts.items())
