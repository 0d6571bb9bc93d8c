"""The decisions of a guided tagger as one HTML page."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from structperc.inspection.decision_steps import Decided, Step
from structperc.inspection.decision_text import decision_headline, step_rows, step_verdict
from structperc.reports.page import STYLE as BASE
from structperc.reports.page import framed, html_table

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


def decision_html(sentences: Iterable[Decided], title: str, notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield an HTML page about decisions, line by line with line ends; all text is escaped.

    Early decisions stand out in colour.
    """
    sections = (line for decided in sentences for line in _section(decided))
    yield from framed(title, notes, sections, BASE + STYLE + _shades())


def _shades() -> str:
    shares = [round(100 * (1 - i / (SHADES - 1))) for i in range(SHADES)]
    shades = (f"color-mix(in srgb, var(--early) {share}%, transparent)" for share in shares)
    return "".join(f".s{i} {{ background: {shade}; }}\n" for i, shade in enumerate(shades))


def _section(decided: Decided) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(decision_headline(decided))}</h2>\n"
    if decided.steps:
        yield from _tokens(decided)
        wrong = ["wrong" if decided.missed(step) is not None else "" for step in decided.steps]
        yield from html_table(step_rows(decided), wrong)
    yield "</section>\n"


def _tokens(decided: Decided) -> Iterator[str]:
    """The sentence: each token with the number of its step above and its label below."""
    yield "<ol>\n"
    for step in decided.in_text:
        shade, word = SHADES * (step.number - 1) // len(decided.steps), escape(decided.words[step.token])
        yield f'<li class="s{shade}"><small>{step.number}</small>{word}{_label(decided, step)}</li>\n'
    yield "</ol>\n"


def _label(decided: Decided, step: Step) -> str:
    if decided.missed(step) is None:
        return f"<small>{escape(step.label)}</small>"
    return f'<small class="wrong">{escape(f"{step.label}, {step_verdict(decided, step)}")}</small>'
