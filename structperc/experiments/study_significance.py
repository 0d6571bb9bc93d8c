"""Tests of the rows of a study against its baseline: single runs, over seeds, and over documents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structperc.data.tag_schemes import spans, to_iob2
from structperc.errors import InputError
from structperc.experiments.experiment import ExperimentRow, Run
from structperc.metrics.comparison import System, evaluate_systems
from structperc.metrics.significance import holm, paired_bootstrap, paired_t_test, score_interval, sum_by_document
from structperc.training.predictions import SentenceStrings, document_numbers, read_predictions


class CorrectTokens(NamedTuple):
    """Correctness of each token of a run."""

    text: int  # hash of words and gold labels
    system: System


class RunPredictions(NamedTuple):
    """Correctness of a run by its labels as written and by the same segments in IOB2."""

    own: CorrectTokens
    iob2: CorrectTokens  # the same as `own` for labels without segments
    counts: np.ndarray  # (D, 3) int64, correct, predicted and gold segments (or tokens) of each document


class Significance:
    """P-values of runs against those of the baseline; predictions are read once and cached.

    Points of a learning curve are compared with those of the baseline for the same size of training data.

    Labels are compared as written, or in IOB2 if the runs use different schemes.

    Args:
        split: the split of the predictions.
        baseline: name of the row, or of the learning curve, to compare with.
    """

    def __init__(self, split: str, baseline: str) -> None:
        self.split, self.baseline = split, baseline
        self._cache: dict[Path, RunPredictions] = {}

    def __call__(self, runs: Sequence[Run]) -> list[dict[str, float]]:
        """Return `p_tokens` and `p_sentences` of each run; {} for the baseline, and where predictions are missing.

        Raises InputError for predictions of different texts.
        """
        return [
            {} if run.row.learner == self.baseline else self._test(run, partner(run, self._baseline(run.row, runs)))
            for run in runs
        ]

    def rows(self, runs: Sequence[Run]) -> dict[str, dict[str, float]]:
        """Return the interval of the score of each row over documents, and its difference to the baseline with tests.

        Keys are `score_low`, `score_high`, and for rows other than the baseline `difference`, `difference_low`,
        `difference_high` (95 %, over documents), `p_seeds`, `p_documents`, `p_documents_holm`, as far as there are runs
        for them.
        """
        by_row = {name: self._interval(of_row) for name, of_row in _by_row(runs).items()}
        for name, of_row in _by_row(runs).items():
            if of_row[0].row.learner != self.baseline:
                by_row[name] |= self._row(of_row, self._baseline(of_row[0].row, runs))
        tested = [tests for tests in by_row.values() if "p_documents" in tests]
        for tests, p in zip(tested, holm([tests["p_documents"] for tests in tested]), strict=True):
            tests["p_documents_holm"] = p
        return by_row

    def _interval(self, runs: Sequence[Run]) -> dict[str, float]:
        predictions = [self._predictions(run) for run in runs if self._has_score(run)]
        counts = [prediction.counts for prediction in predictions if prediction is not None]
        if not counts or len(counts) < len(predictions) or len({array.shape for array in counts}) > 1:
            return {}
        low, high = score_interval(np.stack(counts))
        return {"score_low": low, "score_high": high}

    def _baseline(self, row: ExperimentRow, runs: Sequence[Run]) -> list[Run]:
        return [run for run in runs if run.row.learner == self.baseline and run.row.values == row.values]

    def _row(self, runs: Sequence[Run], baseline: Sequence[Run]) -> dict[str, float]:
        pairs = [(a, b) for a, b in pairs_of(runs, baseline) if self._has_score(a) and self._has_score(b)]
        if not pairs:
            return {}
        p_seeds = paired_t_test([self._score(run) - self._score(other) for run, other in pairs])
        seed_test = {} if p_seeds is None else {"p_seeds": p_seeds}
        predictions = [(self._predictions(run), self._predictions(other)) for run, other in pairs]
        counts = [(a.counts, b.counts) for a, b in predictions if a is not None and b is not None]
        if len(counts) < len(pairs) or any(a.shape != b.shape for a, b in counts):
            return seed_test
        ours, theirs = (np.stack(each) for each in zip(*counts, strict=True))
        test = paired_bootstrap(theirs, ours)
        interval = {"difference": test.difference, "difference_low": test.low, "difference_high": test.high}
        return {**interval, **seed_test, "p_documents": test.p}

    def _has_score(self, run: Run) -> bool:
        """Return False for a failed run, and for another system without predictions of this text."""
        return run.results is not None and self.split in run.results

    def _score(self, run: Run) -> float:
        assert run.results is not None
        return float(run.results[self.split]["score"])

    def _test(self, run: Run, other: Run | None) -> dict[str, float]:
        ours, theirs = self._predictions(run), self._predictions(other)
        if ours is None or theirs is None:
            return {}
        alike = ours.own.text == theirs.own.text
        mine, base = (ours.own, theirs.own) if alike else (ours.iob2, theirs.iob2)
        if mine.text != base.text:
            raise InputError(
                f"{run.folder}: its predictions are not of the text and gold labels of those of "
                f"{base.system.name}: the data have changed in between; run the study in another folder (--root)"
            )
        tests = base.system.against(mine.system)
        return {"p_tokens": tests.tokens.p, "p_sentences": tests.sentences.p}

    def _predictions(self, run: Run | None) -> RunPredictions | None:
        """Return the predictions of a run; None if it failed, or its words cannot be written as columns."""
        if run is None or run.folder is None:
            return None
        path = Path(run.folder) / "predictions" / f"{self.split}.conll"
        if path not in self._cache:
            if not path.is_file():
                return None
            self._cache[path] = _compare_with_gold(
                run.folder, *read_predictions(str(path)), document_numbers(str(path))
            )
        return self._cache[path]


def _compare_with_gold(
    name: str, words: SentenceStrings, gold: SentenceStrings, predicted: SentenceStrings, documents: np.ndarray
) -> RunPredictions:
    def correct_tokens(gold: SentenceStrings, predicted: SentenceStrings) -> CorrectTokens:
        (system,) = evaluate_systems(gold, [predicted], "none", [name])
        return CorrectTokens(hash((str(words), str(gold))), system)

    as_given = correct_tokens(gold, predicted)
    try:
        iob2 = correct_tokens(list(map(to_iob2, gold)), list(map(to_iob2, predicted)))
        sentences: list[tuple[set[Any], set[Any]]]  # for each sentence
        sentences = [(set(spans(a)), set(spans(b))) for a, b in zip(gold, predicted, strict=True)]
    except InputError:  # labels without segments
        iob2 = as_given
        sentences = [(set(enumerate(a)), set(enumerate(b))) for a, b in zip(gold, predicted, strict=True)]
    counts = np.array([[len(a & b), len(b), len(a)] for a, b in sentences], np.int64).reshape(-1, 3)
    return RunPredictions(as_given, iob2, sum_by_document(counts, documents))


def _by_row(runs: Sequence[Run]) -> dict[str, list[Run]]:
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        by_name.setdefault(run.row.name, []).append(run)
    return by_name


def pairs_of(runs: Sequence[Run], baseline: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return pairs of runs of the same seed; a row with a single run is paired with all runs of the baseline."""
    if len(runs) == 1 and len(runs[0].row.seeds) == 1:
        return [(runs[0], other) for other in baseline]
    pairs = [(run, partner(run, baseline)) for run in runs]
    return [(run, other) for run, other in pairs if other is not None]


def partner(run: Run, baseline: Sequence[Run]) -> Run | None:
    """Return the run of the baseline to compare with: that of the same seed, or the only one."""
    if len(baseline) == 1 and len(baseline[0].row.seeds) == 1:
        return baseline[0]
    return next((other for other in baseline if other.seed == run.seed), None)
