"""Explanations of decisions as one HTML page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from structperc.inspection.explanation import Change, Explanation
from structperc.inspection.explanation_text import (
    change_verdict,
    context,
    explanation_headline,
    legend,
    readings,
    score_rows,
)
from structperc.inspection.marked_text import STYLE as MARKS
from structperc.inspection.marked_text import Tints, marked_lines, types_of
from structperc.reports.page import STYLE, framed, html_table, tints


def explanation_html(
    explanations: Sequence[Explanation], title: str, notes: Sequence[str] = (), types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page about decisions, line by line with line ends; all text is escaped.

    Where there are several documents, an index comes first. Colours go by the segment types of the model, if these are
    given.
    """
    yield from framed(title, notes, _contents(explanations, types), STYLE + MARKS)


def _contents(explanations: Sequence[Explanation], types: Sequence[str]) -> Iterator[str]:
    tinted = tints(types, types_of(explanations))
    if len(explanations) > 1:
        yield from _index(explanations)
    if explanations:
        yield from _legend(explanations, tinted)
    for explanation in explanations:
        yield from _section(explanation, tinted, len(explanations) > 1)


def _index(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Links to all documents, with what came of their changes."""
    yield '<nav id="index">\n<p>Documents:</p>\n<ul>\n'
    for one in explanations:
        found = Counter(change_verdict(change) or "changed" for change in one.changes)
        about = escape(", ".join(f"{n} {what}" for what, n in found.items()))
        yield f'<li><a href="#{_anchor(one)}">{one.row + 1}</a> <small>{about}</small></li>\n'
    yield "</ul>\n</nav>\n"


def _anchor(explanation: Explanation) -> str:
    return f"document-{explanation.row + 1}"


def _legend(explanations: Sequence[Explanation], tinted: Tints) -> Iterator[str]:
    seen = types_of(explanations)
    types = " ".join(f'<mark class="t{tint}">{escape(name)}</mark>' for name, tint in tinted.items() if name in seen)
    changed = '<mark class="changed">words<small><del>before</del> <ins>after</ins></small></mark>'
    yield f'<div class="legend">\n<p>{types} {changed} changed by non-local features</p>\n'
    yield from (f"<p>{escape(line)}</p>\n" for line in legend(explanations))
    yield "</div>\n"


def _section(explanation: Explanation, tinted: Tints, indexed: bool) -> Iterator[str]:
    back = '<a href="#index">index</a>' if indexed else ""
    yield f'<section id="{_anchor(explanation)}">\n<h2>{escape(explanation_headline(explanation))}{back}</h2>\n'
    yield from marked_lines(explanation.sentences, tinted)
    for change in explanation.changes:
        yield from _change(change)
    rows = score_rows(explanation)
    yield from html_table(rows, ["total" if row[0] == "total score" else "" for row in rows[1:]])
    yield "</section>\n"


def _change(change: Change) -> Iterator[str]:
    before, own, after = map(escape, context(change))
    yield f'<p><span class="place">{escape(change.place)}</span> {before} <strong>{own}</strong> {after}</p>\n<dl>\n'
    for who, text in readings(change):
        yield f"<dt>{who}</dt><dd>{escape(text)}</dd>\n"
    if change_verdict(change):
        yield f'<dt></dt><dd class="{change.verdict}">{escape(change_verdict(change))}</dd>\n'
    yield "</dl>\n"
