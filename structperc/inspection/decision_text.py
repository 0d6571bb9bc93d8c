"""The decisions of a guided tagger as text."""

from collections.abc import Iterator, Sequence

from structperc.inspection.decision_steps import Decided, Step
from structperc.inspection.explanation_text import number
from structperc.reports.table import text_table

NOTES = (
    "step: when the token was decided; the easiest ones come first",
    "left, right: labels of neighbours that were decided already, which the decision could use; U: its score",
    "gold, where it is known: whether the label is correct, and where it is not the correct one in brackets",
    "so far: the sentence at this step; # is the token that is decided, = were decided before, . are open",
    "at first: the label for which the token was taken, where another sequence of decisions has won in the end; "
    "all other columns are about that one",
)
SIDES = {"step": ">", "left": ">", "U": ">"}  # how columns are aligned; others to the left


def decision_notes() -> tuple[str, ...]:
    """Return lines that say what the columns and words of tables and pages of decisions mean."""
    return NOTES


def decision_lines(decided: Decided) -> Iterator[str]:
    """Yield text about a sentence: its words with the numbers of their steps, then a table with a line per step."""
    yield decision_headline(decided)
    if decided.steps:
        yield "  " + " ".join(f"{decided.words[step.token]}({step.number})" for step in decided.in_text)
        rows = step_rows(decided)
        yield from text_table(rows, "".join(SIDES.get(name, "<") for name in rows[0]), indent="  ")


def decision_headline(decided: Decided) -> str:
    """Return one line about the sentence: its place, its length, its score and how many labels are correct."""
    T = len(decided.words)
    text = f"sentence {decided.row + 1} ({decided.place}): {T} token{'s' * (T != 1)}, score {number(decided.score)}"
    correct = T - sum(decided.missed(step) is not None for step in decided.steps)
    return text if decided.gold is None else f"{text}, {correct} of {T} labels correct"


def step_rows(decided: Decided) -> list[list[str]]:
    """Return a heading and the steps as cells.

    Columns about gold and about labels that changed are there only if there is something to show.
    """
    steps = decided.steps
    columns = {
        "step": [str(step.number) for step in steps],
        "left": [" ".join(step.left) for step in steps],
        "token": [decided.words[step.token] for step in steps],
        "right": [" ".join(step.right) for step in steps],
        "label": [step.label for step in steps],
        "U": [number(step.U) for step in steps],
    }
    if any(step.first != step.label for step in steps):
        columns["at first"] = [step.first if step.first != step.label else "" for step in steps]
    if decided.gold is not None:
        columns["gold"] = [step_verdict(decided, step) for step in steps]
    columns["so far"] = _progress(steps)
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def step_verdict(decided: Decided, step: Step) -> str:
    """Return whether the label is that of gold, and if not gold's label, as text; "" where gold is not known."""
    missed = decided.missed(step)
    return "correct" if missed is None else f"wrong ({missed})"


def _progress(steps: Sequence[Step]) -> list[str]:
    """The sentence at each step, a character for each token."""
    shown, found = ["."] * len(steps), []
    for step in steps:
        shown[step.token] = "#"
        found.append("".join(shown))
        shown[step.token] = "="
    return found
