"""McNemar's tests of the runs of a study against those of its baseline."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from structperc.data.segments import in_iob2
from structperc.errors import InputError
from structperc.experiments.experiment import Run
from structperc.metrics.systems import System, judged
from structperc.training.predictions import SentenceStrings, read_predictions


class Judged(NamedTuple):
    """What a run got right, token by token, and a hash that tells on which text."""

    text: int  # hash of words and gold labels
    system: System


class JudgedRun(NamedTuple):
    """What a run got right, by its labels as they stand, and by those of the same segments in IOB2."""

    own: Judged
    iob2: Judged  # the same as `own` where labels are no segments


class Significance:
    """The p-values of runs against those of the baseline; predictions are read once, however often they are asked for.

    Labels are compared as they stand; those of runs that have learned different schemes are compared in IOB2.

    Args:
        split: whose predictions are compared.
        baseline: name of the row that others are compared with.
    """

    def __init__(self, split: str, baseline: str) -> None:
        self.split, self.baseline = split, baseline
        self._known: dict[Path, JudgedRun] = {}

    def __call__(self, runs: Sequence[Run]) -> list[dict[str, float]]:
        """For each run `p_tokens` and `p_sentences`, if it and its partner have predictions; none of the baseline.

        Raises InputError for predictions of different texts.
        """
        own = [run for run in runs if run.row.name == self.baseline]
        return [{} if run in own else self._test(run, partner(run, own)) for run in runs]

    def _test(self, run: Run, other: Run | None) -> dict[str, float]:
        ours, theirs = self._judged(run), self._judged(other)
        if ours is None or theirs is None:
            return {}
        alike = ours.own.text == theirs.own.text
        one, base = (ours.own, theirs.own) if alike else (ours.iob2, theirs.iob2)
        if one.text != base.text:
            raise InputError(
                f"{run.training.run}: its predictions are not of the text and gold labels of those of "
                f"{base.system.name}: the data have changed in between; run the study in another folder (--root)"
            )
        tokens, sentences = base.system.against(one.system)
        return {"p_tokens": tokens.p, "p_sentences": sentences.p}

    def _judged(self, run: Run | None) -> JudgedRun | None:
        """None for a run that failed, or has words that no column file can hold, and so no predictions."""
        if run is None or run.training.run is None:
            return None
        path = Path(run.training.run) / "predictions" / f"{self.split}.conll"
        if path not in self._known:
            if not path.is_file():
                return None
            self._known[path] = _judged(run.training.run, *read_predictions(str(path)))
        return self._known[path]


def _judged(name: str, words: SentenceStrings, gold: SentenceStrings, predicted: SentenceStrings) -> JudgedRun:
    def judge(wanted: SentenceStrings, found: SentenceStrings) -> Judged:
        (system,) = judged(wanted, [found], "none", [name])
        return Judged(hash((str(words), str(wanted))), system)

    own = judge(gold, predicted)
    try:
        return JudgedRun(own, judge(list(map(in_iob2, gold)), list(map(in_iob2, predicted))))
    except InputError:  # labels that are no segments
        return JudgedRun(own, own)


def partner(run: Run, baseline: Sequence[Run]) -> Run | None:
    """Return the run that a run is compared with: the baseline's of the same seed, or its only one."""
    if len(baseline) == 1 and len(baseline[0].row.seeds) == 1:
        return baseline[0]
    return next((one for one in baseline if one.seed == run.seed), None)
