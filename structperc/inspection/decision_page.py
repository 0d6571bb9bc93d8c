"""The decisions of a guided tagger as one HTML page."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import chain

from structperc.data.tags import named_type
from structperc.inspection.decision_steps import Decided, Step
from structperc.inspection.decision_text import decision_headline, decision_notes, step_rows, step_verdict
from structperc.reports.page import STYLE as BASE
from structperc.reports.page import TINTED, framed, html_table, tints

SHADES = 6  # of tokens, from the first decisions to the last
STYLE = """
:root { --early: #c3dcfa; }
@media (prefers-color-scheme: dark) { :root { --early: #173e70; } }
ol { display: flex; flex-wrap: wrap; gap: .3rem; list-style: none; padding: 0; }
li { display: grid; justify-items: center; padding: .1rem .5rem; border: 1px solid var(--line); border-radius: .3rem; }
small { color: var(--dim); }
.wrong { color: var(--bad); }
th, td { text-align: left; white-space: nowrap; }
:is(th, td):is(:nth-child(1), :nth-child(2), :nth-child(6)) { text-align: right; }
td:last-child { font-family: ui-monospace, monospace; white-space: pre; }
"""


def decision_html(
    sentences: Iterable[Decided], title: str, notes: Sequence[str] = (), types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page about decisions, line by line with line ends; all text is escaped.

    Early decisions stand out in colour, and labels have the colours of their segment types, if these are given. A
    legend comes before the sentences.
    """
    tinted = tints(types)
    sections = (line for decided in sentences for line in _section(decided, tinted))
    yield from framed(title, notes, chain(_legend(tinted), sections), BASE + TINTED + STYLE + _shades())


def _legend(tinted: dict[str, int]) -> Iterator[str]:
    """Yield the legend of boxes and columns, with an example of a box."""
    yield '<div class="legend">\n<ol><li class="s0"><small>1</small>word<small>label</small></li></ol>\n'
    yield "<p>Boxes: the words of the sentence; above each the step in which it was decided, below it the label, red "
    yield "where it is wrong. The earlier a decision, the stronger the colour of its box.</p>\n"
    if tinted:
        types = (f'<mark class="t{tint}">{escape(name)}</mark>' for name, tint in tinted.items())
        yield f"<p>Labels: {' '.join(types)}</p>\n"
    yield from (f"<p>{escape(note)}</p>\n" for note in decision_notes())
    yield "</div>\n"


def _shades() -> str:
    shares = [round(100 * (1 - i / (SHADES - 1))) for i in range(SHADES)]
    shades = (f"color-mix(in srgb, var(--early) {share}%, transparent)" for share in shares)
    return "".join(f".s{i} {{ background: {shade}; }}\n" for i, shade in enumerate(shades))


def _section(decided: Decided, tinted: dict[str, int]) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(decision_headline(decided))}</h2>\n"
    if decided.steps:
        yield from _tokens(decided, tinted)
        wrong = ["wrong" if decided.missed(step) is not None else "" for step in decided.steps]
        yield from html_table(step_rows(decided), wrong, cards=True)
    yield "</section>\n"


def _tokens(decided: Decided, tinted: dict[str, int]) -> Iterator[str]:
    """The sentence: each token with the number of its step above and its label below."""
    yield "<ol>\n"
    for step in decided.in_text:
        shade, word = SHADES * (step.number - 1) // len(decided.steps), escape(decided.words[step.token])
        yield f'<li class="s{shade}"><small>{step.number}</small>{word}{_label(decided, step, tinted)}</li>\n'
    yield "</ol>\n"


def _label(decided: Decided, step: Step, tinted: dict[str, int]) -> str:
    kind = named_type(step.label)
    label = escape(step.label)
    if kind in tinted:
        label = f'<mark class="t{tinted[kind]}">{label}</mark>'
    if decided.missed(step) is None:
        return f"<small>{label}</small>"
    return f'<small class="wrong">{label}, {escape(step_verdict(decided, step))}</small>'
