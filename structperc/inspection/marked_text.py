"""A document as HTML with its segments marked; those that changed are shown with what they were before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from structperc.data.segments import Span
from structperc.inspection.explanation import Change, ChangedSentence, Explanation
from structperc.reports.page import TINTED

STYLE = (
    TINTED
    + """
.document { line-height: 1.9; max-width: 46rem; }
.document p { margin: .1rem 0; }
mark.changed { background: none; outline: 2px solid var(--dim); margin: 0 .15em; }
mark.repaired { outline-color: var(--good); }
mark.damaged { outline-color: var(--bad); }
mark del { color: var(--dim); }
mark ins { text-decoration: none; }
"""
)

Tints = Mapping[str, int]


def types_of(explanations: Iterable[Explanation]) -> set[str]:
    """Return the types of all segments that are shown."""
    return {span.type for one in explanations for sentence in one.sentences for span in _all(sentence)}


def _all(sentence: ChangedSentence) -> Iterator[Span]:
    yield from sentence.found
    for change in sentence.changes:
        yield from change.before


def marked_lines(sentences: Iterable[ChangedSentence], tinted: Tints) -> Iterator[str]:
    """Yield a paragraph of HTML for each sentence."""
    yield '<div class="document">\n'
    yield from (f"<p>{' '.join(_pieces(sentence, tinted))}</p>\n" for sentence in sentences if sentence.words)
    yield "</div>\n"


def _pieces(sentence: ChangedSentence, tinted: Tints) -> Iterator[str]:
    """Words and marks, in their order."""
    at, marks = 0, {change.extent: _changed(change) for change in sentence.changes}
    for kind, start, end in sentence.found:
        if not any(first < end and start < stop for first, stop in marks):
            marks[start, end] = _marked(sentence.words[start:end], kind, tinted)
    for (start, end), mark in sorted(marks.items()):
        yield from map(escape, sentence.words[at:start])
        yield mark
        at = end
    yield from map(escape, sentence.words[at:])


def _marked(words: Sequence[str], kind: str, tinted: Tints) -> str:
    """A segment with its type."""
    return f'<mark class="t{tinted[kind]}">{escape(" ".join(words))}<small>{escape(kind)}</small></mark>'


def _changed(change: Change) -> str:
    first, stop = change.extent
    words = escape(" ".join(change.words[first:stop]))
    before, after = (escape(_named(change, spans)) for spans in (change.before, change.after))
    kind = "changed" if change.gold is None else f"changed {change.verdict}"
    return f'<mark class="{kind}">{words}<small><del>{before}</del> <ins>{after}</ins></small></mark>'


def _named(change: Change, spans: Sequence[Span]) -> str:
    """Types of segments; with their words, where they are not all that changed."""
    names = [
        span.type if span[1:] == change.extent else f"{span.type} {' '.join(change.words[span.start : span.end])}"
        for span in spans
    ]
    return ", ".join(names) or "none"
