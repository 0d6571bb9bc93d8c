"""Gold labels that models trained without them contradict: a list of possible errors of annotation."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from structperc.analysis.bias_fitting import check_local, fit_temperature
from structperc.analysis.error_analysis import label_segments
from structperc.analysis.explanation_report import surrounding
from structperc.data.corpus import Corpus
from structperc.data.label_sets import is_incomplete
from structperc.data.tag_schemes import Span
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.metrics.segment_errors import ERROR_KINDS, SegmentPair, match_segments
from structperc.models.base import flat_values
from structperc.reranking.jackknife import JackKnife, fold_numbers
from structperc.spelling import counted
from structperc.taggers.base import BaseTagger
from structperc.taggers.tagger import Tagger
from structperc.text.alignment import TokenizedText, join_words

Value = TypeVar("Value")
WEAK = 0.7  # F1; if a tenth of the labels were wrong, a third of the contradictions of such models would be errors
FEW = 0.5  # share of the sentences left for training
CSV_HEADER = ("probability", "models", "place", "kind", "gold type", "gold", "predicted type", "predicted", "sentence")


class Contradiction(NamedTuple):
    """A gold segment, or its absence, and what models trained without the sentence predict there.

    Example:
        >>> from structperc.data import Span
        >>> pair = SegmentPair(Span("ORG", 0, 1), Span("LOC", 0, 1))
        >>> one = Contradiction("train.txt:7", ["Oslo", "wins"], pair, probability=0.97, models=1)
        >>> one.row()[:5]
        ['0.9700', '1', 'train.txt:7', 'wrong type', 'ORG']
    """

    place: str  # "file:line" of the first token of the pair
    words: list[str]  # words of the sentence
    pair: SegmentPair  # segments from the start of the sentence
    probability: float  # probability of the prediction, the mean over the rounds; 0 for models that agree with gold
    models: int  # number of models that predict it: one for each round
    sentence: int = 0  # number of the sentence in the training data
    segments: Sequence[Span] = ()  # all gold segments of the sentence

    def row(self) -> list[str]:
        """Return the values of `CSV_HEADER`."""
        sides: list[str] = []
        for span in self.pair:
            sides += ["", ""] if span is None else [span.type, " ".join(self.words[span.start : span.end])]
        kind = ERROR_KINDS[self.pair.kind]
        return [f"{self.probability:.4f}", str(self.models), self.place, kind, *sides, " ".join(self.words)]


class LabelNoise(NamedTuple):
    """The result of `label_noise`: contradictions, and whether the models are good enough to judge the labels.

    Example:
        >>> LabelNoise([], segments=10).f1, LabelNoise([], segments=10).weak
        (1.0, False)
    """

    contradictions: list[Contradiction]  # the most probable errors of annotation first
    segments: int  # gold segments, or tokens of labels without segments
    rounds: int = 1
    kept: float = 1.0  # mean share of the sentences of other folds that the models are trained on
    name: str = "F1"  # of the score: accuracy for labels without segments

    @property
    def contradicted(self) -> float:
        """Share of the gold segments that the models contradict, the mean over the rounds."""
        return sum(error.models for error in self.contradictions if error.pair.gold) / max(
            1, self.segments * self.rounds
        )

    @property
    def f1(self) -> float:
        """F1 of the models on the held-out folds, over all rounds, in 0..1."""
        spurious = sum(error.models for error in self.contradictions if error.pair.found) / max(
            1, self.segments * self.rounds
        )
        correct = 1 - self.contradicted
        return 2 * correct / (1 + correct + spurious)

    @property
    def weak(self) -> bool:
        """True if F1 is below `WEAK`: most contradictions are then errors of the models."""
        return self.f1 < WEAK


def label_noise(
    first: Tagger, data: SequenceDataModule, plan: JackKnife, rounds: int = 1, **options: Any
) -> LabelNoise:
    """Return the gold labels of training data that cross-validated models contradict, the most probable errors first.

    CrossWeigh, Wang et al. 2019: the training data are split into folds, and each fold is labelled by a model of the
    other sentences that have none of its segments (by their words), so that an error that occurs several times is not
    learned from its copies. Differs: folds consist of whole documents, if these are marked; contradictions are ranked
    by their probability, with a temperature fitted on the fold, and no weights are derived from them.

    The probability of a contradiction is that of the predicted segment; for a missed gold segment it is 1 minus the
    probability of the gold one. Labels without segments are compared token by token, by models of all other folds.

    Args:
        first: Tagger before training, without non-local features; it is not changed.
        data: Data module whose training data has sentences as sequences.
        plan: Number of folds, epochs and seed. Its cache is not used.
        rounds: Number of splits; the seed increases by 1 with each of them.
        options: Options of the trainers, such as accelerator and enable_progress_bar.

    Raises:
        InputError: A tagger, data or numbers that do not fit, or a fold with segments of all other sentences.

    Example:
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.criteria import CRFLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> first = Tagger(FeatureExtractor(["w[0]", "w[-1]"]), SparseLinear(), CRFLoss())
        >>> plan = JackKnife(folds=2, epochs=10)
        >>> found = label_noise(first, Synthetic(train=20, dev=0, test=0), plan)  # doctest: +SKIP
        >>> found.contradictions[0].probability > 0.5  # doctest: +SKIP
        True
    """
    corpus = data.corpus("train")
    _check(first, data, corpus, rounds)
    segments = label_segments(corpus.sequences_of(corpus.columns["label"]), data.scheme)
    words = corpus.sequences_of(corpus.columns["word"])
    by_pair: defaultdict[tuple[int, SegmentPair], list[float]] = defaultdict(list)
    kept: list[float] = []
    for number in range(rounds):
        again = copy(plan)
        again.seed = plan.seed + number
        fold_of = fold_numbers(corpus.documents, plan.folds, again.seed)
        for fold in range(plan.folds):
            held = fold_of == fold
            others = ~held if data.scheme == "none" else _without_segments(words, segments, held)
            if not others.any():
                raise InputError(f"fold {fold + 1}: all other sentences have segments of it; set more folds")
            kept.append(float(others.sum() / (~held).sum()))
            tagger = again.train(first, data, corpus.subset(others), fold, **options)
            rows = np.flatnonzero(held).tolist()
            for row, pair, probability in _contradictions(tagger, corpus.subset(held), data.scheme):
                by_pair[rows[row], pair].append(probability)
    made = []
    for (row, pair), probabilities in by_pair.items():
        place = corpus.where(int(corpus.starts[row]) + pair.extent[0])
        mean = sum(probabilities) / rounds
        made.append(Contradiction(place, list(words[row]), pair, mean, len(probabilities), row, segments[row]))
    made.sort(key=lambda one: -one.probability)
    name = "accuracy" if data.scheme == "none" else "F1"
    return LabelNoise(made, sum(map(len, segments)), rounds, fmean(kept), name)


def noise_lines(found: LabelNoise, most: int) -> Iterator[str]:
    """Yield the contradictions with the highest probabilities, with context; then the score of the models.

    A further line says if the models are too weak, and what to do.

    Args:
        found: Result of `label_noise`.
        most: Number of contradictions.

    Example:
        >>> from structperc.data import Span
        >>> pair = SegmentPair(Span("ORG", 0, 1), Span("LOC", 0, 1))
        >>> one = Contradiction("train.txt:7", ["Oslo", "wins"], pair, 0.97, 1)
        >>> print(*noise_lines(LabelNoise([one], segments=10), 10), sep="\\n")
        0.970  gold ORG Oslo, predicted LOC Oslo
               train.txt:7: [Oslo] wins
        1 contradiction, 1 shown
        F1 of the models on held-out sentences: 90.0; they contradict 10 % of the labelled segments
    """
    for error in found.contradictions[:most]:
        sides = zip(("gold", "predicted"), error.pair, strict=True)
        texts = [f"{name} {span.type} {' '.join(error.words[span.start : span.end])}" for name, span in sides if span]
        missing = {"missed": ", predicted nothing", "spurious": ", gold nothing"}.get(error.pair.kind, "")
        yield f"{error.probability:.3f}  {', '.join(texts)}{missing}"
        before, inside, after = surrounding(error.words, *error.pair.extent)
        yield "       " + " ".join(part for part in (f"{error.place}:", before, f"[{inside}]", after) if part)
    total = len(found.contradictions)
    yield f"{counted(total, 'contradiction')}, {min(most, total)} shown"
    what = "tokens" if found.name == "accuracy" else "labelled segments"
    score = f"{found.name} of the models on held-out sentences: {100 * found.f1:.1f}"
    yield f"{score}; they contradict {100 * found.contradicted:.0f} % of the {what}"
    if found.weak:
        few = (
            f"only {100 * found.kept:.0f} % of the sentences have no segment of a held-out part: set more --folds; or "
        )
        advice = f"{few if found.kept < FEW else ''}give more text, or a configuration with a higher score"
        why = f"below {100 * WEAK:.0f} most contradictions are errors of the models, not of the labels"
        yield f"warning: {why}; {advice}"


def noise_rows(found: Iterable[Contradiction]) -> Iterator[dict[str, Any]]:
    """Yield each sentence with its gold spans and its contradictions, as plain JSON types.

    The text is the words with spaces between them, and offsets count its characters. `convert` reads such rows.

    Args:
        found: Contradictions, see `label_noise`.

    Example:
        >>> from structperc.data import Span
        >>> pair = SegmentPair(Span("ORG", 3, 4), Span("LOC", 3, 4))
        >>> one = Contradiction("a.txt:7", "We live in Oslo".split(), pair, 0.97, 1, segments=[pair.gold])
        >>> (row,) = noise_rows([one])
        >>> row["spans"], row["contradictions"][0]["predicted"]
        ([{'start': 11, 'end': 15, 'type': 'ORG'}], {'start': 11, 'end': 15, 'type': 'LOC'})
    """
    sentences: defaultdict[int, list[Contradiction]] = defaultdict(list)
    for contradiction in found:
        sentences[contradiction.sentence].append(contradiction)
    for of_sentence in sentences.values():
        text = join_words([of_sentence[0].words])

        def mark(span: Span | None, text: TokenizedText = text) -> dict[str, Any] | None:
            if span is None:
                return None
            return {"start": text.tokens[span.start][0], "end": text.tokens[span.end - 1][1], "type": span.type}

        contradictions = [
            {
                "place": error.place,
                "kind": ERROR_KINDS[error.pair.kind],
                "gold": mark(error.pair.gold),
                "predicted": mark(error.pair.found),
                "probability": error.probability,
                "models": error.models,
            }
            for error in of_sentence
        ]
        yield {"text": text.text, "spans": [*map(mark, of_sentence[0].segments)], "contradictions": contradictions}


def _check(first: BaseTagger, data: SequenceDataModule, corpus: Corpus, rounds: int) -> None:
    if not isinstance(first, Tagger):
        raise InputError(f"model: label noise is found by a Tagger, not by a {type(first).__name__}")
    check_local(first)
    if first.init_from is not None:
        raise InputError("model.init_from: its model has seen the labels; remove it")
    if data.unit != "sentence":
        raise InputError(f"data.unit: {data.unit}; sentences are compared: set data.unit: sentence")
    if is_incomplete(corpus):
        raise InputError(f"{corpus.name}: incomplete labels cannot be contradicted; give complete ones")
    if rounds < 1:
        raise InputError(f"rounds must be >= 1, got {rounds}")


def _without_segments(
    words: Sequence[Sequence[str]], segments: Sequence[Sequence[Any]], held: np.ndarray
) -> np.ndarray:
    """Return (S,) bool, True for sentences that are not held out and have no segment of those that are."""
    texts = [
        {" ".join(text[span.start : span.end]) for span in spans} for text, spans in zip(words, segments, strict=True)
    ]
    forbidden = set().union(*(texts[i] for i in np.flatnonzero(held)))
    return np.array([text.isdisjoint(forbidden) for text in texts]) & ~held


@torch.no_grad()
def _contradictions(tagger: Tagger, held: Corpus, scheme: str) -> Iterator[tuple[int, SegmentPair, float]]:
    """Yield the number of the sentence, the pair and the probability of each error on a fold."""
    tagger.temperature = fit_temperature(tagger, held)
    prediction = tagger.predict(held, confident=True)
    confidences = prediction.tokens if scheme == "none" else prediction.segments
    assert confidences is not None
    parts = []
    for batch in tagger.batches(held):
        assert batch.gold is not None
        parts.append((batch.rows, tagger.confidences(batch, batch.gold)[1]))
    gold_known = flat_values(held, parts, float)
    gold, predicted = (
        label_segments(held.sequences_of(flat), scheme) for flat in (held.columns["label"], prediction.labels)
    )
    for row, (first, spans, other) in enumerate(zip(held.starts.tolist(), gold, predicted, strict=False)):
        for pair in match_segments(spans, other):
            if pair.found is not None and pair.kind != "correct":
                yield row, pair, float(confidences[first + pair.found.start])
            elif pair.gold is not None and pair.kind == "missed":
                yield row, pair, 1 - float(gold_known[first + pair.gold.start])
