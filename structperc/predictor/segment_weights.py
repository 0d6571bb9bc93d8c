"""The weights and features of segments of a saved model, as a sparse predictor needs them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import Span
from structperc.features.segment_index import HashedSegmentIndex, SegmentIndex, segment_ids
from structperc.features.segment_keys import SegmentKeys
from structperc.kernels.array_types import SegmentArrays


class SegmentWeights(NamedTuple):
    """Weights of features of segments, see `scorers.SegmentLinear`."""

    extractor: SegmentKeys
    features: SegmentIndex | HashedSegmentIndex
    weights: np.ndarray  # (F, C) float32

    @property
    def columns(self) -> list[str]:
        """Names of the columns that the features read; attributes of documents may be among them."""
        return self.extractor.columns

    def arrays(self, corpus: Corpus, labels: LabelSet, spans: Mapping[int, Iterable[Span]]) -> SegmentArrays:
        """Return the features of all segments of a corpus of n tokens, and those that are not forbidden.

        `spans`: forbidden spans by index of the sequence.
        """
        every = np.broadcast_to(np.True_, (corpus.tokens, self.extractor.max_length))
        found = list(segment_ids(self.features, self.extractor, corpus, every))
        counts = np.zeros((len(found), corpus.tokens + 1), np.int64)
        for d, (_, own) in enumerate(found):
            counts[d, 1:] = own
        before = np.cumsum([0, *(len(ids) for ids, _ in found)])[:-1]
        table, types = labels.segment_table, labels.segmentation.types
        begins = np.zeros(len(labels), bool)
        begins[table[:, :2]] = True
        return SegmentArrays(
            np.concatenate([ids for ids, _ in found]),
            counts.cumsum(1) + before[:, None],
            self._candidates(corpus, labels, spans),
            table,
            np.where(types < 0, len(table) - 1, types),
            begins,
        )

    def _candidates(self, corpus: Corpus, labels: LabelSet, spans: Mapping[int, Iterable[Span]]) -> np.ndarray:
        """Return a mask (n, D, C) bool of the segments that are not forbidden; (0, D, C) if none is."""
        D, C = self.extractor.max_length, len(labels.type_names)
        found = np.ones((corpus.tokens if spans else 0, D, C), bool)
        for sequence, own in spans.items():
            for kind, start, end in own:
                if end - start <= D:
                    found[corpus.starts[sequence] + start, end - start - 1, labels.type_names.index(kind)] = False
        return found
