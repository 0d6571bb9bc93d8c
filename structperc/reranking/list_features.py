"""Global features of the candidates of training lists: first which strings there are, then who has which."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from pytorch_lightning.utilities import move_data_to_device
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import EncodedCorpus
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.metrics import oracle
from structperc.nonlocal_features import CandidateSegments, GlobalFeature, Vocabulary, find_segments, spell
from structperc.progress import bar
from structperc.reranking.examples import Examples
from structperc.reranking.lists import CandidateLists, Correct, Listed
from structperc.structures import Batch, Candidates

BATCH = 64  # sequences at a time

class Part(NamedTuple):
    """A mini-batch with its candidate lists and the segments of its candidates."""

    batch: Batch
    listed: Listed
    segments: CandidateSegments


class Found(NamedTuple):
    """Candidates of a batch and the global features they have, numbered over all features in turn."""

    candidates: Candidates  # scores are the first model's
    labellings: Tensor  # (N,) int64, b * K + k
    ids: Tensor  # (N,) int64


class ListFeatures:
    """Reads global features off the candidate lists of a corpus.

    Args:
        features: get the strings of the lists as their vocabularies; they have read the corpus.
        rows: the corpus.
        lists: one for each of its sequences.
        labels: the label set of the lists.
        device: where segments are read.
        progress: whether bars are shown.
    """

    def __init__(
        self,
        features: Sequence[GlobalFeature],
        rows: EncodedCorpus,
        lists: CandidateLists,
        labels: LabelSet,
        device: torch.device,
        progress: bool = True,
    ) -> None:
        self.features, self.rows, self.lists, self.labels = features, rows, lists, labels
        self.device, self.progress = device, progress
        self.vocabularies = [Vocabulary() for _ in features]

    def learn(self, min_sequences: int) -> None:
        """Make features of the strings that at least so many sequences have in their lists; their weights are zero."""
        for batch, listed, segments in self._parts("collecting strings"):
            for feature, vocabulary in zip(self.features, self.vocabularies, strict=True):
                vocabulary.add(feature.occurrences(segments), batch.rows, listed.candidates.valid.shape[1])
        for feature, vocabulary in zip(self.features, self.vocabularies, strict=True):
            feature.learn(vocabulary.keys(min_sequences))

    def examples(self, correct: Correct) -> Examples:
        """Return what a ranker learns from, in the order of the corpus.

        Features shared by a whole list are left out.
        """
        parts, rows = [], []
        for part in self._parts("reading lists"):
            candidates = part.listed.candidates
            right, F = right_candidates(part, self.labels, correct), n_features(self.features)
            labellings, ids = numbered(self.features, part.segments)
            found = Examples.from_pairs(labellings, ids, candidates.scores, candidates.valid, right, F)
            parts.append(found.differing())
            rows.append(part.batch.rows)
        return Examples.concat(parts).take(torch.cat(rows).argsort())

    def spell(self, feature: GlobalFeature, keys: Tensor) -> list[str]:
        """Return the strings of keys (F,) that occur in the lists, including those that are no features any more."""
        vocabulary = self.vocabularies[list(self.features).index(feature)]

        def labels(row: int, k: int) -> list[str]:
            start, end = self.lists.starts[row : row + 2].tolist()
            return self.labels.decode(self.lists.labels[start:end, k].long())

        return spell(feature, vocabulary.examples(keys), self.rows.corpus, labels, self.labels.type_names)

    def _parts(self, activity: str) -> Iterator[Part]:
        """All lists, those of long sequences first."""
        order = LengthBatchSampler(self.rows.corpus.lengths, BATCH, shuffle=False)
        with bar(None, activity, len(self.rows), self.progress) as shown:
            for chosen in order:
                batch = move_data_to_device(self.rows[chosen], self.device)
                listed = move_data_to_device(self.lists.cut(torch.tensor(chosen)), self.device)
                candidates = listed.candidates
                yield Part(batch, listed, find_segments(batch, candidates.labels, candidates.valid, self.labels))
                shown.update(len(chosen))


def right_candidates(part: Part, labels: LabelSet, correct: Correct) -> Tensor:
    """Return the correct candidate (B,) int64 of each list: gold, or where gold is not in the list the closest one.

    With `correct` "gold" there is none in such a list, which -1 says.
    """
    batch, candidates = part.batch, part.listed.candidates
    assert batch.gold is not None
    if correct == "closest":
        return oracle(candidates, batch.gold, batch.lengths, labels, batch.sentences)
    golden = (candidates.labels == batch.gold.unsqueeze(1)).all(2) & candidates.valid
    return torch.where(golden.any(1), golden.byte().argmax(1), -1)


def numbered(features: Sequence[GlobalFeature], segments: CandidateSegments) -> tuple[Tensor, Tensor]:
    """Return labellings b * K + k (N,) and the features that they have (N,), numbered over all features in turn."""
    labellings, ids, before = [], [], 0
    for feature in features:
        who, what = feature.found(segments)
        labellings.append(who)
        ids.append(what + before)
        before += len(feature.keys)
    return torch.cat(labellings), torch.cat(ids)


def n_features(features: Sequence[GlobalFeature]) -> int:
    """Return how many strings all features have together."""
    return sum(len(feature.keys) for feature in features)
