"""The order in which a guided tagger decides the tokens of sentences, and the basis of each decision."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import label_type
from structperc.errors import InputError
from structperc.guided.training_arrays import UNKNOWN, Decisions
from structperc.reports.html_pages import render, type_colours
from structperc.reports.tables import decimal, text_table
from structperc.taggers.guided_tagger import GuidedTagger

BATCH_SIZE = 64
DECISION_NOTES = (
    "step: number of the decision; the easiest tokens come first",
    "left, right: labels of neighbours that were decided before; U: score of the decision",
    "gold, if known: correct, or wrong with the correct label in brackets",
    "so far: the sentence at this step; # is the token of this step, = was decided before, . is undecided",
    "at first: the label in the best hypothesis at this step, if another hypothesis won in the end; all other columns "
    "show the winner",
)


class Step(NamedTuple):
    """A token and the decision on its label.

    Tokens are decided one by one, each with the label of the best hypothesis at that step. With a beam of more than
    one, another hypothesis may win in the end: label, U, left and right are those of its action.
    """

    number: int  # from 1
    token: int  # index in the sentence, from 0
    label: str
    first: str  # label in the best hypothesis at that step
    U: float  # score of the action that gave `label`
    left: list[str]  # known labels of at most two tokens before, in the order of the text
    right: list[str]  # known labels of at most two tokens after


class SentenceDecisions(NamedTuple):
    """The decisions on one sentence."""

    row: int  # index of the sequence in the corpus, from 0
    place: str  # "file:line" of its first token
    words: Sequence[str]
    gold: Sequence[str] | None  # gold labels; None if unknown
    steps: list[Step]  # decisions on all tokens, in their order

    @property
    def score(self) -> float:
        """The score V of the label sequence: the sum of its actions' scores."""
        return sum(step.U for step in self.steps)

    @property
    def in_text(self) -> list[Step]:
        """The steps in the order of the tokens in the text."""
        return sorted(self.steps, key=lambda step: step.token)

    def missed(self, step: Step) -> str | None:
        """Return the gold label if the predicted one is wrong; None if it is correct or there are no gold labels."""
        return None if self.gold is None or step.label == self.gold[step.token] else self.gold[step.token]


def decisions(tagger: GuidedTagger, corpus: Corpus, rows: Sequence[int] | None = None) -> list[SentenceDecisions]:
    """Return the decisions of a guided tagger on sentences of a corpus.

    Gold labels may be unknown to the tagger.

    Args:
        tagger: A guided tagger.
        corpus: Sentences, with or without gold labels.
        rows: Numbers of the sentences, from 0; default: all.

    Raises:
        InputError: A row is unknown.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import Corpus, FeatureExtractor
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.guided import ContextFeatures
        >>> features, context = FeatureExtractor(["w[-1]", "w[0]", "w[1]"]), ContextFeatures(["t[-1]", "t[1]"])
        >>> tagger = GuidedTagger(features, context, beam=1)
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> trainer = pl.Trainer(max_epochs=3, enable_progress_bar=False, enable_model_summary=False, **quiet)
        >>> trainer.fit(tagger, datamodule=Synthetic(train=20, dev=0, test=0))
        >>> corpus = Corpus.from_sentences([{"word": ["Shares", "of", "Penus", "Corp.", "fell"]}])
        >>> steps = decisions(tagger, corpus)[0].steps
        >>> [corpus.columns["word"][step.token] for step in steps]  # the easiest tokens first
        ['Penus', 'of', 'Shares', 'Corp.', 'fell']
    """
    chosen = list(range(len(corpus)) if rows is None else rows)
    if wrong := [row for row in chosen if not 0 <= row < len(corpus)]:
        there = f"the {len(corpus)} of {corpus.name}; choose 1..{len(corpus)}"
        raise InputError(f"sentence {wrong[0] + 1} is not among {there}")
    longest_first = sorted((row for row in chosen if corpus.lengths[row]), key=lambda row: -corpus.lengths[row])
    steps = dict(_decode(tagger, corpus, longest_first))
    sentences = []
    for row in chosen:
        start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
        place = corpus.where(start) if row in steps else f"{corpus.name}, sentence {row + 1}"
        gold = corpus.columns["label"][start:end] if "label" in corpus.columns else None
        words = corpus.columns["word"][start:end]
        sentences.append(SentenceDecisions(row, place, words, gold, steps.get(row, [])))
    return sentences


def _decode(tagger: GuidedTagger, corpus: Corpus, rows: Sequence[int]) -> Iterator[tuple[int, list[Step]]]:
    if not rows:
        return
    text = {role: values for role, values in corpus.columns.items() if role != "label"}
    encoded = tagger.encode(replace(corpus, columns=text).slice(0, max(rows) + 1))
    for at in range(0, len(rows), BATCH_SIZE):
        batch = tagger.transfer_batch_to_device(encoded[rows[at : at + BATCH_SIZE]], tagger.device, 0)
        tensors = tagger.guided.decode(batch)
        for b, row in enumerate(batch.rows.tolist()):
            yield row, _steps(Decisions(*(values[b].cpu() for values in tensors)), tagger.labels)


def _steps(found: Decisions, labels: LabelSet) -> list[Step]:
    """Return the steps of the decisions on one sentence, without the dimension B."""

    def known(window: list[int]) -> list[str]:
        return labels.decode([label for label in window if label != UNKNOWN])

    taken = found.order.argsort()[found.order.eq(-1).sum() :].tolist()
    label, first = labels.decode(found.labels), labels.decode(found.first)
    windows, U = found.windows.tolist(), found.U.tolist()
    return [
        Step(number, t, label[t], first[t], U[t], known(windows[t][:2]), known(windows[t][2:]))
        for number, t in enumerate(taken, 1)
    ]


def decision_lines(sentence: SentenceDecisions) -> Iterator[str]:
    r"""Yield the words of a sentence with the numbers of their steps, then a table with a line per step.

    Args:
        sentence: The decisions on the sentence, see `decisions`.

    Example:
        >>> steps = [Step(1, 1, "O", "O", 2.0, [], []), Step(2, 0, "B-PER", "B-PER", 1.5, [], ["O"])]
        >>> print(*decision_lines(SentenceDecisions(0, "a.txt:1", ["Anna", "left"], ["B-PER", "O"], steps)), sep="\n")
        sentence 1 (a.txt:1): 2 tokens, score 3.5, 2 of 2 labels correct
          Anna(2) left(1)
          step  left  token  right  label    U  gold     so far
             1        left          O        2  correct  .#
             2        Anna   O      B-PER  1.5  correct  #=
    """
    yield decision_headline(sentence)
    if sentence.steps:
        yield "  " + " ".join(f"{sentence.words[step.token]}({step.number})" for step in sentence.in_text)
        yield from text_table(step_rows(sentence), ">><<<><", indent="  ")


def decision_headline(sentence: SentenceDecisions) -> str:
    """Return one line: place, length, score and number of correct labels of a sentence."""
    T = len(sentence.words)
    text = f"sentence {sentence.row + 1} ({sentence.place}): {T} token{'s' * (T != 1)}, score {decimal(sentence.score)}"
    correct = T - sum(sentence.missed(step) is not None for step in sentence.steps)
    return text if sentence.gold is None else f"{text}, {correct} of {T} labels correct"


def step_rows(sentence: SentenceDecisions) -> list[list[str]]:
    """Return a heading and the steps as cells, with columns of gold and of changed labels if there are any."""
    steps = sentence.steps
    columns = {
        "step": [str(step.number) for step in steps],
        "left": [" ".join(step.left) for step in steps],
        "token": [sentence.words[step.token] for step in steps],
        "right": [" ".join(step.right) for step in steps],
        "label": [step.label for step in steps],
        "U": [decimal(step.U) for step in steps],
    }
    if any(step.first != step.label for step in steps):
        columns["at first"] = [step.first if step.first != step.label else "" for step in steps]
    if sentence.gold is not None:
        columns["gold"] = [step_verdict(sentence, step) for step in steps]
    shown, columns["so far"] = ["."] * len(steps), []
    for step in steps:
        shown[step.token] = "#"
        columns["so far"].append("".join(shown))
        shown[step.token] = "="
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def step_verdict(sentence: SentenceDecisions, step: Step) -> str:
    """Return "correct", or "wrong" with the gold label in brackets."""
    missed = sentence.missed(step)
    return "correct" if missed is None else f"wrong ({missed})"


def decision_html(
    sentences: Iterable[SentenceDecisions], title: str, notes: Sequence[str] = (), types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page in parts: a legend, then the sentences with early decisions in colour.

    Args:
        sentences: Decisions on sentences, see `decisions`.
        title: Title of the page.
        notes: Lines below the title.
        types: Segment types of the model; labels have the colours of their types.

    Example:
        >>> steps = [Step(1, 1, "O", "O", 2.0, [], []), Step(2, 0, "B-PER", "B-PER", 1.5, [], ["O"])]
        >>> one = SentenceDecisions(0, "a.txt:1", ["Anna", "left"], None, steps)
        >>> page = "".join(decision_html([one], "Order of decisions", types=["PER"]))
        >>> "<title>Order of decisions</title>" in page
        True
    """
    return render(
        "decisions.html",
        title=title,
        notes=notes,
        sentences=sentences,
        colours=type_colours(types),
        legend=DECISION_NOTES,
        **{function.__name__: function for function in (decision_headline, step_rows, step_verdict, label_type)},
    )
