"""The frame of an HTML page that needs nothing else, for light and dark screens, and its tables."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

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


def framed(title: str, notes: Iterable[str], sections: Iterable[str], style: str = STYLE) -> Iterator[str]:
    """Yield the lines of an HTML page: a heading, a paragraph per note, then the sections, which are HTML already."""
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
    yield from (f"<p>{escape(note)}</p>\n" for note in notes)
    yield from sections
    yield "</body>\n</html>\n"


def html_table(rows: Sequence[Sequence[str]], kinds: Sequence[str]) -> Iterator[str]:
    """Yield the lines of an HTML table.

    Args:
        rows: the cells as plain text; the first row is the heading.
        kinds: the CSS class of each row after the heading, "" for none.
    """
    heading, *others = rows
    yield f'<div class="wide"><table>\n<thead>{_row(heading, "th")}</thead>\n<tbody>\n'
    for row, kind in zip(others, kinds, strict=True):
        yield _row(row, "td", kind) + "\n"
    yield "</tbody>\n</table></div>\n"


def _row(cells: Sequence[str], tag: str, kind: str = "") -> str:
    """A row of a table, the first cell as its heading, of class `kind`."""
    name, *values = map(escape, cells)
    opening = f'<tr class="{kind}">' if kind else "<tr>"
    return opening + f"<th>{name}</th>" + "".join(f"<{tag}>{value}</{tag}>" for value in values) + "</tr>"
