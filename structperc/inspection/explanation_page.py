"""Explanations of decisions as one HTML page that needs nothing else, for light and dark screens."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from structperc.inspection.explanation import Change, Explanation
from structperc.inspection.explanation_text import context, headline, legend, readings, score_rows, verdict
from structperc.inspection.marked_text import STYLE as MARKS
from structperc.inspection.marked_text import Tints, marked_lines, tints

STYLE = """
:root { color-scheme: light dark; --line: #c8c8c8; --good: #14733b; --bad: #b3261e; --dim: #5f5f5f; }
@media (prefers-color-scheme: dark) {
  :root { --line: #4a4a4a; --good: #6fd08c; --bad: #ff8a80; --dim: #a8a8a8; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
h1 { font-size: 1.3rem; }
h2 { font-size: 1.1rem; }
h2 a { font-size: .8em; font-weight: normal; margin-left: .5em; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .7rem; text-align: right; font-weight: normal; }
th:first-child { text-align: left; }
thead th, tr.total > * { font-weight: bold; }
nav ul { columns: 9rem; padding: 0; list-style: none; }
nav li { break-inside: avoid; }
nav small { color: var(--dim); }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1rem; margin: .2rem 0 1rem 1rem; }
dd { margin: 0; }
dt, .place { color: var(--dim); }
.repaired { color: var(--good); }
.damaged { color: var(--bad); }
.wide { overflow-x: auto; overflow-wrap: normal; }
.wide th, .wide td { white-space: nowrap; }
.legend { font-size: .9em; }
.legend p { margin: .2rem 0; }
"""


def page_lines(explanations: Sequence[Explanation], title: str, notes: Sequence[str] = ()) -> Iterator[str]:
    """The page, line by line with their ends; all text is escaped. Several documents have an index."""
    yield from framed(title, notes, _contents(explanations), STYLE + MARKS)


def _contents(explanations: Sequence[Explanation]) -> Iterator[str]:
    tinted = tints(explanations)
    if len(explanations) > 1:
        yield from _index(explanations)
    if explanations:
        yield from _legend(explanations, tinted)
    for explanation in explanations:
        yield from _section(explanation, tinted, len(explanations) > 1)


def framed(title: str, notes: Iterable[str], sections: Iterable[str], style: str = STYLE) -> Iterator[str]:
    """The lines of a page: a heading, paragraphs, then sections, which come in HTML."""
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
    yield from (f"<p>{escape(note)}</p>\n" for note in notes)
    yield from sections
    yield "</body>\n</html>\n"


def _index(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Links to all documents, with what came of their changes."""
    yield '<nav id="index">\n<p>Documents:</p>\n<ul>\n'
    for one in explanations:
        found = Counter(verdict(change) or "changed" for change in one.changes)
        about = escape(", ".join(f"{n} {what}" for what, n in found.items()))
        yield f'<li><a href="#{_anchor(one)}">{one.row + 1}</a> <small>{about}</small></li>\n'
    yield "</ul>\n</nav>\n"


def _anchor(explanation: Explanation) -> str:
    return f"document-{explanation.row + 1}"


def _legend(explanations: Sequence[Explanation], tinted: Tints) -> Iterator[str]:
    types = " ".join(f'<mark class="t{tint}">{escape(name)}</mark>' for name, tint in tinted.items())
    changed = '<mark class="changed">words<small><del>before</del> <ins>after</ins></small></mark>'
    yield f'<div class="legend">\n<p>{types} {changed} changed by non-local features</p>\n'
    yield from (f"<p>{escape(line)}</p>\n" for line in legend(explanations))
    yield "</div>\n"


def _section(explanation: Explanation, tinted: Tints, indexed: bool) -> Iterator[str]:
    back = '<a href="#index">index</a>' if indexed else ""
    yield f'<section id="{_anchor(explanation)}">\n<h2>{escape(headline(explanation))}{back}</h2>\n'
    yield from marked_lines(explanation.sentences, tinted)
    for change in explanation.changes:
        yield from _change(change)
    yield '<div class="wide"><table>\n'
    heading, *rows = score_rows(explanation)
    yield f"<thead>{table_row(heading, 'th')}</thead>\n<tbody>\n"
    for row in rows:
        yield table_row(row, "td", "total" if row[0] == "total score" else "") + "\n"
    yield "</tbody>\n</table></div>\n</section>\n"


def _change(change: Change) -> Iterator[str]:
    before, own, after = map(escape, context(change))
    yield f'<p><span class="place">{escape(change.place)}</span> {before} <strong>{own}</strong> {after}</p>\n<dl>\n'
    for who, text in readings(change):
        yield f"<dt>{who}</dt><dd>{escape(text)}</dd>\n"
    if verdict(change):
        yield f'<dt></dt><dd class="{change.verdict}">{escape(verdict(change))}</dd>\n'
    yield "</dl>\n"


def table_row(cells: Sequence[str], tag: str, kind: str = "") -> str:
    """A row of a table, the first cell as its heading, of class `kind`."""
    name, *values = map(escape, cells)
    opening = f'<tr class="{kind}">' if kind else "<tr>"
    return opening + f"<th>{name}</th>" + "".join(f"<{tag}>{value}</{tag}>" for value in values) + "</tr>"
