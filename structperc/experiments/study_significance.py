"""Tests of the rows of a study against its baseline: of single runs, over seeds, and over documents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structperc.data.tag_schemes import spans, to_iob2
from structperc.errors import InputError
from structperc.experiments.experiment import Run
from structperc.metrics.comparison import System, evaluate_systems
from structperc.metrics.significance import paired_bootstrap, paired_t_test
from structperc.training.predictions import SentenceStrings, document_numbers, read_predictions


class CorrectTokens(NamedTuple):
    """Correctness of each token of a run, and a hash of the text."""

    text: int  # hash of words and gold labels
    system: System


class RunPredictions(NamedTuple):
    """Correctness of a run by its labels as written, and by those of the same segments in IOB2."""

    own: CorrectTokens
    iob2: CorrectTokens  # the same as `own` where labels are no segments
    counts: np.ndarray  # (D, 3) int64, right, predicted and gold segments of each document; of tokens without segments


class Significance:
    """The p-values of runs against those of the baseline; predictions are read once, however often they are asked for.

    Labels are compared as they stand; those of runs that have learned different schemes are compared in IOB2.

    Args:
        split: whose predictions are compared.
        baseline: name of the row that others are compared with.
    """

    def __init__(self, split: str, baseline: str) -> None:
        self.split, self.baseline = split, baseline
        self._known: dict[Path, RunPredictions] = {}

    def __call__(self, runs: Sequence[Run]) -> list[dict[str, float]]:
        """For each run `p_tokens` and `p_sentences`, if it and its partner have predictions; none of the baseline.

        Raises InputError for predictions of different texts.
        """
        own = [run for run in runs if run.row.name == self.baseline]
        return [{} if run in own else self._test(run, partner(run, own)) for run in runs]

    def rows(self, runs: Sequence[Run]) -> dict[str, dict[str, float]]:
        """For each row but the baseline its difference to that, and tests of it over seeds and over documents.

        By name: `difference`, `difference_low`, `difference_high` (95 %, over documents), `p_seeds`, `p_documents`, as
        far as there are runs for them.
        """
        own = [run for run in runs if run.row.name == self.baseline]
        names = dict.fromkeys(run.row.name for run in runs if run.row.name != self.baseline)
        return {name: self._row([run for run in runs if run.row.name == name], own) for name in names}

    def _row(self, runs: Sequence[Run], baseline: Sequence[Run]) -> dict[str, float]:
        pairs = [(a, b) for a, b in pairs_of(runs, baseline) if a.results and b.results]
        if not pairs:
            return {}
        p_seeds = paired_t_test([self._score(run) - self._score(other) for run, other in pairs])
        found = {} if p_seeds is None else {"p_seeds": p_seeds}
        evaluate_systems = [(self._judged(run), self._judged(other)) for run, other in pairs]
        counts = [(a.counts, b.counts) for a, b in evaluate_systems if a is not None and b is not None]
        if len(counts) < len(pairs) or any(a.shape != b.shape for a, b in counts):
            return found
        ours, theirs = (np.stack(each) for each in zip(*counts, strict=True))
        test = paired_bootstrap(theirs, ours)
        interval = {"difference": test.difference, "difference_low": test.low, "difference_high": test.high}
        return {**interval, **found, "p_documents": test.p}

    def _score(self, run: Run) -> float:
        assert run.results is not None
        return float(run.results[self.split]["score"])

    def _test(self, run: Run, other: Run | None) -> dict[str, float]:
        ours, theirs = self._judged(run), self._judged(other)
        if ours is None or theirs is None:
            return {}
        alike = ours.own.text == theirs.own.text
        one, base = (ours.own, theirs.own) if alike else (ours.iob2, theirs.iob2)
        if one.text != base.text:
            raise InputError(
                f"{run.folder}: its predictions are not of the text and gold labels of those of "
                f"{base.system.name}: the data have changed in between; run the study in another folder (--root)"
            )
        tokens, sentences = base.system.against(one.system)
        return {"p_tokens": tokens.p, "p_sentences": sentences.p}

    def _judged(self, run: Run | None) -> RunPredictions | None:
        """None for a run that failed, or has words that no column file can hold, and so no predictions."""
        if run is None or run.folder is None:
            return None
        path = Path(run.folder) / "predictions" / f"{self.split}.conll"
        if path not in self._known:
            if not path.is_file():
                return None
            self._known[path] = _judged(run.folder, *read_predictions(str(path)), document_numbers(str(path)))
        return self._known[path]


def _judged(
    name: str, words: SentenceStrings, gold: SentenceStrings, predicted: SentenceStrings, documents: np.ndarray
) -> RunPredictions:
    def judge(wanted: SentenceStrings, found: SentenceStrings) -> CorrectTokens:
        (system,) = evaluate_systems(wanted, [found], "none", [name])
        return CorrectTokens(hash((str(words), str(wanted))), system)

    own = judge(gold, predicted)
    try:
        iob2 = judge(list(map(to_iob2, gold)), list(map(to_iob2, predicted)))
        found: list[tuple[set[Any], set[Any]]]  # of each sentence
        found = [(set(spans(a)), set(spans(b))) for a, b in zip(gold, predicted, strict=True)]
    except InputError:  # labels that are no segments
        iob2 = own
        found = [(set(enumerate(a)), set(enumerate(b))) for a, b in zip(gold, predicted, strict=True)]
    counts = np.array([[len(a & b), len(b), len(a)] for a, b in found], np.int64).reshape(-1, 3)
    ids, which = np.unique(documents, return_inverse=True)
    if len(ids) == 1:  # a text without marks of documents: its sentences are what is drawn
        ids, which = documents, np.arange(len(documents))
    by_document = np.zeros((len(ids), 3), np.int64)
    np.add.at(by_document, which, counts)
    return RunPredictions(own, iob2, by_document)


def pairs_of(runs: Sequence[Run], baseline: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return the runs of a row, each with the baseline's of the same seed; a row's only run with all of the other's."""
    if len(runs) == 1 and len(runs[0].row.seeds) == 1:
        return [(runs[0], other) for other in baseline]
    found = [(run, partner(run, baseline)) for run in runs]
    return [(run, other) for run, other in found if other is not None]


def partner(run: Run, baseline: Sequence[Run]) -> Run | None:
    """Return the run that a run is compared with: the baseline's of the same seed, or its only one."""
    if len(baseline) == 1 and len(baseline[0].row.seeds) == 1:
        return baseline[0]
    return next((one for one in baseline if one.seed == run.seed), None)
