"""The order in which a guided tagger decided the tokens of sentences, and what each decision was based on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.guided import Decisions
from structperc.guided.templates import UNKNOWN
from structperc.inspection.decision_steps import Decided, Step
from structperc.taggers.guided_tagger import GuidedTagger

TOGETHER = 64  # sentences


def decisions(tagger: GuidedTagger, corpus: Corpus, rows: Sequence[int] | None = None) -> list[Decided]:
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
    encoded = tagger.encode(replace(corpus, columns=text).stretch(0, max(rows) + 1))
    for at in range(0, len(rows), TOGETHER):
        batch = tagger.transfer_batch_to_device(encoded[rows[at : at + TOGETHER]], tagger.device, 0)
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


def _decided(corpus: Corpus, row: int, steps: list[Step]) -> Decided:
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    place = corpus.where(start) if steps else f"{corpus.name}, sentence {row + 1}"
    gold = corpus.columns["label"][start:end] if "label" in corpus.columns else None
    return Decided(row, place, corpus.columns["word"][start:end], gold, steps)
