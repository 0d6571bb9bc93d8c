"""The steps in which a guided tagger decided the tokens of a sentence.

The order in which a guided tagger decided the tokens of sentences, and what each decision was based on.

The decisions of a guided tagger as text.

The decisions of a guided tagger as one HTML page.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import chain
from typing import NamedTuple

from structperc.analysis.explanation_report import number
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import label_type
from structperc.errors import InputError
from structperc.guided import Decisions
from structperc.guided.templates import UNKNOWN
from structperc.reports.html_pages import MARK_COLOURS, html_page, html_table, type_colours
from structperc.reports.html_pages import STYLE as BASE
from structperc.reports.tables import text_table
from structperc.taggers.guided_tagger import GuidedTagger


class Step(NamedTuple):
    """A token and how it got its label.

    Tokens are taken one by one, each for the label of the hypothesis that leads at the time. In the end another
    hypothesis may win, where the beam keeps more than one: label, U, left and right are those of its action.
    """

    number: int  # from 1
    token: int  # its place in the sentence, from 0
    label: str
    first: str  # label for which the token was taken
    U: float  # score of the action that gave `label`
    left: list[str]  # labels of the tokens before, at most two and as in the text, that the action knew
    right: list[str]  # the same of the tokens after


class SentenceDecisions(NamedTuple):
    """How a sentence was decided: its words, gold where it is known, and the steps in their order."""

    row: int  # which sequence of the corpus, from 0
    place: str  # "file:line" of its first token
    words: Sequence[str]
    gold: Sequence[str] | None  # labels; None when they are not known
    steps: list[Step]  # of all tokens, in the order of their decisions

    @property
    def score(self) -> float:
        """The score V of the labelling: the sum of its actions' scores."""
        return sum(step.U for step in self.steps)

    @property
    def in_text(self) -> list[Step]:
        """The steps in the order of the tokens in the text."""
        return sorted(self.steps, key=lambda step: step.token)

    def missed(self, step: Step) -> str | None:
        """Return gold's label if the step gave another one; None if it is the same or gold is not known."""
        return None if self.gold is None or step.label == self.gold[step.token] else self.gold[step.token]


BATCH_SIZE = 64  # sentences


def decisions(tagger: GuidedTagger, corpus: Corpus, rows: Sequence[int] | None = None) -> list[SentenceDecisions]:
    """Return how sentences of a corpus were decided: all of them, or those with these row numbers, from 0.

    Gold labels are only shown: the tagger need not know them. Raises InputError for a row that is not there.
    """
    chosen = list(range(len(corpus)) if rows is None else rows)
    if wrong := [row for row in chosen if not 0 <= row < len(corpus)]:
        there = f"the {len(corpus)} of {corpus.name}; choose 1..{len(corpus)}"
        raise InputError(f"sentence {wrong[0] + 1} is not among {there}")
    longest_first = sorted((row for row in chosen if corpus.lengths[row]), key=lambda row: -corpus.lengths[row])
    steps = dict(_decode(tagger, corpus, longest_first))
    return [_decided(corpus, row, steps.get(row, [])) for row in chosen]


def _decode(tagger: GuidedTagger, corpus: Corpus, rows: Sequence[int]) -> Iterator[tuple[int, list[Step]]]:
    """-> each row, which has at least one token, and its steps."""
    if not rows:
        return
    text = {role: values for role, values in corpus.columns.items() if role != "label"}
    encoded = tagger.encode(replace(corpus, columns=text).slice(0, max(rows) + 1))
    for at in range(0, len(rows), BATCH_SIZE):
        batch = tagger.transfer_batch_to_device(encoded[rows[at : at + BATCH_SIZE]], tagger.device, 0)
        found = tagger.guided.decode(batch)
        for b, row in enumerate(batch.rows.tolist()):
            yield row, _steps(Decisions(*(values[b].cpu() for values in found)), tagger.labels)


def _steps(found: Decisions, labels: LabelSet) -> list[Step]:
    """Of the decisions about one sentence: without the dimension B."""

    def known(window: list[int]) -> list[str]:
        return labels.decode([label for label in window if label != UNKNOWN])

    taken = found.order.argsort()[found.order.eq(-1).sum() :].tolist()
    label, first = labels.decode(found.labels), labels.decode(found.first)
    windows, U = found.windows.tolist(), found.U.tolist()
    return [
        Step(number, t, label[t], first[t], U[t], known(windows[t][:2]), known(windows[t][2:]))
        for number, t in enumerate(taken, 1)
    ]


def _decided(corpus: Corpus, row: int, steps: list[Step]) -> SentenceDecisions:
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    place = corpus.where(start) if steps else f"{corpus.name}, sentence {row + 1}"
    gold = corpus.columns["label"][start:end] if "label" in corpus.columns else None
    return SentenceDecisions(row, place, corpus.columns["word"][start:end], gold, steps)


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


def decision_lines(sentence: SentenceDecisions) -> Iterator[str]:
    """Yield text about a sentence: its words with the numbers of their steps, then a table with a line per step."""
    yield decision_headline(sentence)
    if sentence.steps:
        yield "  " + " ".join(f"{sentence.words[step.token]}({step.number})" for step in sentence.in_text)
        rows = step_rows(sentence)
        yield from text_table(rows, "".join(SIDES.get(name, "<") for name in rows[0]), indent="  ")


def decision_headline(sentence: SentenceDecisions) -> str:
    """Return one line about the sentence: its place, its length, its score and how many labels are correct."""
    T = len(sentence.words)
    text = f"sentence {sentence.row + 1} ({sentence.place}): {T} token{'s' * (T != 1)}, score {number(sentence.score)}"
    correct = T - sum(sentence.missed(step) is not None for step in sentence.steps)
    return text if sentence.gold is None else f"{text}, {correct} of {T} labels correct"


def step_rows(sentence: SentenceDecisions) -> list[list[str]]:
    """Return a heading and the steps as cells.

    Columns about gold and about labels that changed are there only if there is something to show.
    """
    steps = sentence.steps
    columns = {
        "step": [str(step.number) for step in steps],
        "left": [" ".join(step.left) for step in steps],
        "token": [sentence.words[step.token] for step in steps],
        "right": [" ".join(step.right) for step in steps],
        "label": [step.label for step in steps],
        "U": [number(step.U) for step in steps],
    }
    if any(step.first != step.label for step in steps):
        columns["at first"] = [step.first if step.first != step.label else "" for step in steps]
    if sentence.gold is not None:
        columns["gold"] = [step_verdict(sentence, step) for step in steps]
    columns["so far"] = _progress(steps)
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def step_verdict(sentence: SentenceDecisions, step: Step) -> str:
    """Return whether the label is that of gold, and if not gold's label, as text; "" where gold is not known."""
    missed = sentence.missed(step)
    return "correct" if missed is None else f"wrong ({missed})"


def _progress(steps: Sequence[Step]) -> list[str]:
    """The sentence at each step, a character for each token."""
    shown, found = ["."] * len(steps), []
    for step in steps:
        shown[step.token] = "#"
        found.append("".join(shown))
        shown[step.token] = "="
    return found


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
    sentences: Iterable[SentenceDecisions], title: str, notes: Sequence[str] = (), types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page about decisions, line by line with line ends; all text is escaped.

    Early decisions stand out in colour, and labels have the colours of their segment types, if these are given. A
    legend comes before the sentences.
    """
    tinted = type_colours(types)
    sections = (line for sentence in sentences for line in _section(sentence, tinted))
    yield from html_page(title, notes, chain(_legend(tinted), sections), BASE + MARK_COLOURS + STYLE + _shades())


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


def _section(sentence: SentenceDecisions, tinted: dict[str, int]) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(decision_headline(sentence))}</h2>\n"
    if sentence.steps:
        yield from _tokens(sentence, tinted)
        wrong = ["wrong" if sentence.missed(step) is not None else "" for step in sentence.steps]
        yield from html_table(step_rows(sentence), wrong, cards=True)
    yield "</section>\n"


def _tokens(sentence: SentenceDecisions, tinted: dict[str, int]) -> Iterator[str]:
    """The sentence: each token with the number of its step above and its label below."""
    yield "<ol>\n"
    for step in sentence.in_text:
        shade, word = SHADES * (step.number - 1) // len(sentence.steps), escape(sentence.words[step.token])
        yield f'<li class="s{shade}"><small>{step.number}</small>{word}{_label(sentence, step, tinted)}</li>\n'
    yield "</ol>\n"


def _label(sentence: SentenceDecisions, step: Step, tinted: dict[str, int]) -> str:
    kind = label_type(step.label)
    label = escape(step.label)
    if kind in tinted:
        label = f'<mark class="t{tinted[kind]}">{label}</mark>'
    if sentence.missed(step) is None:
        return f"<small>{label}</small>"
    return f'<small class="wrong">{label}, {escape(step_verdict(sentence, step))}</small>'
