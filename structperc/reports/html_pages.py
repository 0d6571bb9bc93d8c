"""The frame of an HTML page that needs nothing else, for light, dark and narrow screens; its tables and colours."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

HUES = (210, 20, 130, 280, 50, 330, 170, 0)  # of the first segment types; further ones have the same with a line below
LINES = ("none", "solid", "dotted")
TINTS = len(HUES) * len(LINES)
MANY = 4  # columns; more of them hardly fit on a narrow screen

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
.wide { overflow-x: auto; overflow-wrap: normal; background-repeat: no-repeat;
  background-attachment: local, scroll;
  background-image: linear-gradient(to left, Canvas 40%, transparent), linear-gradient(to left, #8888, transparent);
  background-position: right; background-size: 2.5rem 100%, .9rem 100%; }
.wide th, .wide td { white-space: nowrap; }
.legend, .about { font-size: .9em; }
.legend p, .about { margin: .2rem 0; }
.about { color: var(--dim); }
@media (max-width: 44rem) {
  body { margin: 1rem auto; padding: 0 .8rem; }
  .wide th, .wide td { padding: .2rem .4rem; font-size: .9em; }
  .wide th:first-child { position: sticky; left: 0; background: Canvas; white-space: normal; overflow-wrap: anywhere;
    min-width: 6rem; max-width: 9rem; }
  .many::before { content: "scroll sideways for all columns \\2192"; position: sticky; left: 0; display: block;
    font-size: .85em; color: var(--dim); }
  .cards thead { display: none; }
  .cards tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; border-bottom: 1px solid var(--line); padding: .3rem 0; }
  .cards :is(th, td), .cards :is(th, td):first-child { border: 0; padding: 0; position: static; text-align: left;
    min-width: 0; max-width: none; white-space: normal; overflow-wrap: anywhere; }
  .cards :is(th, td)::before { content: attr(data-name) " "; color: var(--dim); font-family: system-ui, sans-serif; }
  .cards td:empty { display: none; }
}
"""
MARK_COLOURS = """
mark { --tint: var(--line); background: color-mix(in srgb, var(--tint) 30%, transparent); color: inherit;
  padding: .1em .3em; border-radius: .25em; box-decoration-break: clone; -webkit-box-decoration-break: clone; }
mark small { font-size: .7em; font-weight: bold; margin-left: .3em; }
""" + "".join(
    f".t{i} {{ --tint: hsl({HUES[i % len(HUES)]} 75% 50%); border-bottom: 3px {LINES[i // len(HUES)]} var(--tint); }}\n"
    for i in range(TINTS)
)


def type_colours(types: Iterable[str], seen: Iterable[str] = ()) -> dict[str, int]:
    """Return the number of the colour of each segment type, which is its place among those of the model.

    So a type has the same colour on all pages of a model. Types that are `seen` and not the model's come after these.
    """
    known = list(dict.fromkeys(types))
    return {name: i % TINTS for i, name in enumerate([*known, *sorted({*seen} - {*known})])}


def page_title(what: str, model: str, file: str) -> tuple[str, list[str]]:
    """Return a title with the name of a file alone, and a note with the whole paths."""
    return f"{what}: {Path(file).name}", [f"model {model}, file {file}"]


def html_page(title: str, notes: Iterable[str], sections: Iterable[str], style: str = STYLE) -> Iterator[str]:
    """Yield the lines of an HTML page: a heading, a paragraph per note, then the sections, which are HTML already.

    All text but the sections is escaped.
    """
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
    yield from (f'<p class="about">{escape(note)}</p>\n' for note in notes)
    yield from sections
    yield "</body>\n</html>\n"


def html_table(rows: Sequence[Sequence[str]], kinds: Sequence[str], cards: bool = False) -> Iterator[str]:
    """Yield the lines of an HTML table.

    Args:
        rows: the cells as plain text; the first row is the heading.
        kinds: the CSS class of each row after the heading, "" for none.
        cards: on a narrow screen show each row as cells with the names of their columns; else the table scrolls.
    """
    heading, *others = rows
    layout = "cards" if cards else "many" if len(heading) > MANY else ""
    yield f'<div class="wide {layout}"><table>\n<thead>{_row(heading, "th")}</thead>\n<tbody>\n'
    for row, kind in zip(others, kinds, strict=True):
        yield _row(row, "td", kind, heading if cards else ()) + "\n"
    yield "</tbody>\n</table></div>\n"


def _row(cells: Sequence[str], tag: str, kind: str = "", names: Sequence[str] = ()) -> str:
    """A row of a table, the first cell as its heading, of class `kind`; cells with the names of their columns."""
    opening = f'<tr class="{kind}">' if kind else "<tr>"
    named = [f' data-name="{escape(name)}"' for name in names] or [""] * len(cells)
    tags = ["th", *[tag] * (len(cells) - 1)]
    return opening + "".join(f"<{t}{n}>{escape(x)}</{t}>" for t, n, x in zip(tags, named, cells, strict=True)) + "</tr>"
