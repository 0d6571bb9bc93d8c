"""Linear scores of features of whole segments, added to the scores of labels."""

import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from structperc.compiled_forms import Compilable, SegmentFeaturesForm
from structperc.data.corpus import Corpus
from structperc.data.json_data import check_fields
from structperc.data.label_sets import ALLOWED, is_incomplete, split_label_set
from structperc.data.labels import LabelSet
from structperc.data.splits import widest
from structperc.data.tag_schemes import END, INSIDE, parse_tag, spans
from structperc.data.text_files import expand_path
from structperc.encoders.base import TextModule
from structperc.errors import InputError
from structperc.features import Clusters
from structperc.features.resources import cluster_bits
from structperc.features.segment_index import HashedSegmentIndex, SegmentIndex, check_hashing, segment_ids
from structperc.features.segment_keys import PHRASE, SegmentKeys, parse_segment_template, phrase_keys
from structperc.ragged import Ragged
from structperc.scorers.base import LinearForm, Scorer, SegmentForm
from structperc.scorers.segment_candidates import SegmentCandidates
from structperc.scorers.sparse_linear import sum_features
from structperc.structures import Batch, Lattice, SegmentScores, real_tokens

STATE = {
    "features": int,
    "phrases": int,
    "names": int,
    "clusters": dict[str, Any] | None,
    "hash": dict[str, int] | None,
}
HASH = {"named": int, "distinct": int, "occupied": int}
LIMIT = 2**28  # features, phrases or bytes of names of a saved model

logger = logging.getLogger("pytorch_lightning.structperc")


class SegmentFeatures(Compilable, TextModule):
    """Features of all segments of up to D tokens within a sentence, by templates of segments.

    A template joins parts by "|": an attribute of words at all tokens of the segment ("w[all]"), at its first or last
    one, at the first or second token before or after it ("w[-1]", "w[+1]"), `length`, and "NAME[phrase]", whether the
    segment is a phrase of a gazetteer, as it is or in lower case. "NAME[document]" and "NAME[corpus]" are what the
    labels of a first model say of most other mentions of its words, see `features.segment_mentions`. Attributes are
    those of token templates: w, wl, shape, affixes such as s3, prefixes of clusters such as c6; columns of the data;
    and attributes of documents that token templates read as well. A feature with an absent value is left out.

    Features that occur at least `cutoff` times among all segments of the training data have weights. They are numbered
    by 64-bit hashes: the probability that two among a million share a number is below 1e-7.

    Args:
        templates: templates of segments.
        max_length: D; no longer segment is predicted.
        cutoff: minimal count of a feature.
        gazetteers: files of phrases by name, one phrase in each line; environment variables are expanded.
        clusters: file of word clusters, as for `structperc.features.Clusters`; None for none.
        hash_bits: number features by hashes, at most 2**hash_bits, without an index; features with the same hash share
            a number, and `cutoff` applies to hashes.
        candidates: chooses the segments that may be predicted and have features; None: all of up to D tokens. In
            training, gold segments are candidates as well.

    Raises:
        InputError: an invalid template or option; a gazetteer or clusters that no template uses.

    Example:
        >>> from structperc.data import Corpus
        >>> from structperc.scorers import SegmentFeatures
        >>> features = SegmentFeatures(["w[all]", "length"], max_length=2, cutoff=1)
        >>> corpus = Corpus.from_sentences([{"word": ["New", "York"]}])
        >>> features.build_vocabulary(corpus)
        >>> [one.counts.tolist() for one in features.encode_inputs(corpus)]  # segments of one token, and of two
        [[2, 2], [2, 0]]
    """

    keys: Tensor  # (F,) int64, bits of the keys of features, ascending as uint64; or int32, ascending buckets
    phrases: Tensor  # (P,) int64, bits of the keys of phrases
    names: Tensor  # uint8, names of features, one in each line, compressed
    named: Tensor  # (n,) int32, bucket of each name; without buckets none

    form_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {"compiled": ("encode_inputs", "to_state", "_index")}

    def __init__(
        self,
        templates: list[str],
        max_length: int = 8,
        cutoff: int = 2,
        gazetteers: dict[str, str] | None = None,
        clusters: str | None = None,
        hash_bits: int | None = None,
        candidates: SegmentCandidates | None = None,
    ) -> None:
        super().__init__()
        if max_length < 1 or cutoff < 1:
            raise InputError(f"SegmentFeatures: max_length and cutoff must be >= 1, got {max_length} and {cutoff}")
        if not templates:
            raise InputError('SegmentFeatures: no templates; give at least one, such as "w[all]"')
        self.templates, self.max_length, self.cutoff = templates, max_length, cutoff
        self.gazetteers, self.clusters, self.hash_bits = gazetteers, clusters, hash_bits
        if hash_bits is not None:
            check_hashing(hash_bits, cutoff)
        self.candidates = candidates
        keys = SegmentKeys(templates, max_length, np.zeros(0, np.uint64), None)
        self.columns = [name for name in keys.columns if clusters is None or cluster_bits(name) is None]
        self.extent = keys.extent
        self.n_inputs = max_length + (candidates is not None)
        self._words: Clusters | None = None
        self._hash: dict[str, int] | None = None  # sizes of a hashed index
        used = {part.attribute for text in templates for part in parse_segment_template(text) if part.place == PHRASE}
        if used != set(gazetteers or {}):
            name = min(used ^ set(gazetteers or {}))
            advice = "no template uses it; add one or remove it" if name in (gazetteers or {}) else "give its file"
            raise InputError(f"SegmentFeatures: gazetteers: {name}: {advice}")

    def compiled(self) -> SegmentFeaturesForm | None:
        """Return the options that determine the features; None with `candidates`, which need their own code."""
        form = SegmentFeaturesForm(self.templates, self.max_length, self.hash_bits)
        return form if self.candidates is None else None

    @property
    def n_features(self) -> int:
        """Number of features F, available after `build_vocabulary`."""
        return len(self.keys)

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Read the files and count the features of the training data.

        Raises:
            InputError: an unreadable or empty file.
        """
        files = {name: str(expand_path(path)) for name, path in (self.gazetteers or {}).items()}
        found = [phrase_keys(path, name) for name, path in files.items()]
        phrases = np.unique(np.concatenate([np.zeros(0, np.uint64), *found]))
        self._words = None if self.clusters is None else Clusters(expand_path(self.clusters))
        if self.candidates is not None:
            self.candidates.build_vocabulary(corpus)
        extractor, candidates = self._extractor(phrases), np.logical_or(*self._candidates(corpus))
        self.register_buffer("phrases", torch.from_numpy(phrases.view(np.int64)))
        if self.hash_bits is None:
            index: SegmentIndex | HashedSegmentIndex = SegmentIndex.fit(extractor, corpus, candidates, self.cutoff)
        else:
            index = HashedSegmentIndex.fit(extractor, corpus, candidates, self.cutoff, self.hash_bits)
            logger.info("segment features: %s", index.summary())
        self._hash, tensors = _index_state(index)
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def subset(self, keep: np.ndarray) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the state and the tensors of a part of the features, renumbered in the same order.

        `keep`: (F,) bool, True for features to keep.
        """
        sizes, tensors = _index_state(self._index().subset(keep))
        numbers = {"features": len(tensors["keys"]), "names": len(tensors["names"]), "hash": sizes}
        return {**(self.to_state() or {}), **numbers}, tensors

    def feature_names(self, rows: Sequence[int]) -> list[str]:
        """Return the names of features, such as "w[all]=New York".

        `rows`: numbers of features, 0..F-1.

        Raises:
            InputError: the saved names are damaged.
        """
        try:
            return self._index().feature_names(rows)
        except (zlib.error, ValueError, IndexError) as error:
            raise InputError(f"SegmentFeatures: the names of features are damaged ({error})") from None

    def source_files(self) -> list[str]:
        """Return the files of gazetteers and clusters."""
        return [*(self.gazetteers or {}).values(), *([] if self.clusters is None else [self.clusters])]

    def to_state(self) -> dict[str, Any] | None:
        """Return the numbers of features and phrases, and the clusters; None before `build_vocabulary`."""
        if not hasattr(self, "keys"):
            return None
        clusters = None if self._words is None else self._words.to_json()
        sizes = {"features": len(self.keys), "phrases": len(self.phrases), "names": len(self.names)}
        return {**sizes, "clusters": clusters, "hash": self._hash}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Create the tables of keys, which are saved with the weights.

        Raises:
            InputError: an invalid state.
        """
        check_fields(state, STATE, "SegmentFeatures")
        sizes = state["features"], state["phrases"], state["names"]
        if not all(0 <= size <= LIMIT for size in sizes):
            raise InputError(f"SegmentFeatures: invalid numbers of features, phrases and bytes of names: {sizes}")
        self._words = None if state["clusters"] is None else Clusters.from_json(state["clusters"])
        self._hash = state["hash"]
        if (self._hash is None) != (self.hash_bits is None):
            raise InputError(
                "SegmentFeatures: the saved features have another index; set hash_bits as in their training"
            )
        if self._hash is not None:
            check_fields(self._hash, HASH, "SegmentFeatures.hash")
            if not 0 <= self._hash["named"] <= LIMIT:
                raise InputError(f"SegmentFeatures: invalid number of names: {self._hash['named']}")
            self.register_buffer("named", torch.zeros(self._hash["named"], dtype=torch.int32))
        numbers = torch.int64 if self._hash is None else torch.int32
        self.register_buffer("keys", torch.zeros(sizes[0], dtype=numbers))
        self.register_buffer("phrases", torch.zeros(sizes[1], dtype=torch.int64))
        self.register_buffer("names", torch.zeros(sizes[2], dtype=torch.uint8))

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the features of the segments that begin at each token, a Ragged for each length.

        With `candidates`, another Ragged lists the candidates that begin at each token: their numbers of tokens less 1,
        plus D for gold segments that are candidates in training only.

        Raises:
            InputError: incomplete labels.
        """
        likely, gold = self._candidates(corpus)
        extractor = self._extractor(self.phrases.cpu().numpy().view(np.uint64))
        found = list(segment_ids(self._index(), extractor, corpus, likely | gold))
        if self.candidates is not None:
            tokens, kinds = np.concatenate([likely, gold & ~likely], 1).nonzero()
            found.append((kinds.astype(np.int32), np.bincount(tokens, minlength=corpus.tokens)))
        return [Ragged.from_counts(torch.from_numpy(ids), torch.from_numpy(counts)) for ids, counts in found]

    def _index(self) -> SegmentIndex | HashedSegmentIndex:
        keys, names = self.keys.cpu().numpy(), self.names.cpu().numpy()
        if self._hash is None or self.hash_bits is None:
            return SegmentIndex(keys.view(np.uint64), names)
        sizes = self._hash["distinct"], self._hash["occupied"]
        return HashedSegmentIndex(self.hash_bits, keys, self.named.cpu().numpy(), names, *sizes)

    def _candidates(self, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
        """Return the segments that may be predicted, and gold segments, (N, D) bool each; no gold if all may be."""
        size = corpus.tokens, self.max_length
        if self.candidates is None:
            return np.broadcast_to(np.True_, size), np.broadcast_to(np.False_, size)
        if "label" in corpus.columns and is_incomplete(corpus):
            raise InputError(f"{corpus.name}: incomplete labels; remove `candidates` of SegmentFeatures")
        gold = np.zeros(size, bool)
        for start, end in gold_segments(corpus):
            if end - start <= self.max_length:
                gold[start, end - start - 1] = True
        return self.candidates.find(corpus, self.max_length), gold

    def _extractor(self, phrases: np.ndarray) -> SegmentKeys:
        return SegmentKeys(self.templates, self.max_length, phrases, self._words)


def _index_state(index: SegmentIndex | HashedSegmentIndex) -> tuple[dict[str, int] | None, dict[str, Tensor]]:
    """Return the sizes of a hashed index, else None, and the tensors of an index."""
    if isinstance(index, SegmentIndex):
        return None, {"keys": torch.from_numpy(index.keys.view(np.int64)), "names": torch.from_numpy(index.names)}
    arrays = {"keys": index.buckets, "names": index.names, "named": index.named}
    sizes = {"named": len(index.named), "distinct": index.distinct, "occupied": index.occupied}
    return sizes, {name: torch.from_numpy(array) for name, array in arrays.items()}


def _longest_known_segment(corpus: Corpus) -> tuple[int, int]:
    """Return the largest number of tokens that only one segment can contain, given incomplete labels, and the first."""
    texts, numbers = corpus.factorize(ALLOWED)
    begins = ~np.array([_continues(text) for text in texts], bool)[numbers]
    begins[corpus.sentences[:-1][np.diff(corpus.sentences) > 0]] = True
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=len(begins))
    if not len(sizes):
        return 0, 0
    longest = sizes.argmax()
    return int(sizes[longest]), int(starts[longest])


def _continues(text: str) -> bool:
    """Return True for a label, or a set of labels, that can only continue a segment."""
    names, excluded = split_label_set(text)
    return not excluded and all(parse_tag(name).prefix in (INSIDE, END) for name in names)


class SegmentLinear(Scorer):
    """Scores of labels by another scorer, plus linear scores of segments. Sarawagi & Cohen 2004.

    score(y) = score of y by `labels` + sum over the segments s of y of sum_f weight[f, type of s], over the features f
    of s. All searches are exact. Unlike non-local features, which re-rank n best label sequences, features of segments
    take part in the search. Labels have a scheme in which segments have a beginning, such as IOB2 or BILOU, and the
    scorer has no edge features. Segments of the training data must not be longer than `segments.max_length`. Training
    that starts from a saved model keeps its features of segments.

    Args:
        labels: scorer of the labels, such as SparseLinear.
        segments: features of segments.
        sparse_grad: compute gradients of the weights of segments as COO tensors, see `SparseLinear`.
    """

    table: Tensor  # (C + 1, 4), see `SegmentScores.labels`

    def __init__(self, labels: Scorer, segments: SegmentFeatures, sparse_grad: bool = True) -> None:
        super().__init__()
        self.labels, self.segments, self.sparse_grad = labels, segments, sparse_grad
        self.n_inputs = labels.n_inputs + segments.n_inputs
        self.columns = [*labels.columns, *segments.columns]

    def check_data(self, corpus: Corpus) -> None:
        """Raise InputError for a segment of the training data that is too long."""
        self._check_lengths(corpus)
        self.labels.check_data(corpus)

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabularies of both parts."""
        self.labels.build_vocabulary(corpus)
        self.segments.build_vocabulary(corpus)

    def _check_lengths(self, corpus: Corpus) -> None:
        if "label" not in corpus.columns:
            return
        known = ((end - start, start) for start, end in gold_segments(corpus))
        longest, token = _longest_known_segment(corpus) if is_incomplete(corpus) else max(known, default=(0, 0))
        if longest > self.segments.max_length:
            raise InputError(
                f"{corpus.where(token)}: a segment of {longest} tokens, the longest of the training data; set "
                f"max_length of SegmentFeatures to {longest}"
            )

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of both parts."""
        return [*self.labels.encode_inputs(corpus), *self.segments.encode_inputs(corpus)]

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token; None if the scorer of labels does not split tokens."""
        return self.labels.piece_counts(inputs[: self.labels.n_inputs])

    def bind_labels(self, labels: LabelSet) -> None:
        """Take the labels of segments. Raises InputError for a scheme that does not show where segments begin."""
        self.labels.bind_labels(labels)
        candidates = self.segments.candidates
        own = [self.segments.extent, *([] if candidates is None else [candidates.extent])]
        self.extent = widest([self.labels.extent, *own])
        self.register_buffer("table", labels.segment_labels.clone(), persistent=False)

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights (F, C) of features by type, and those of the scorer of labels.

        Raises:
            InputError: there are edge features.
        """
        if n_edge:
            raise InputError("SegmentLinear: scores of label pairs cannot depend on tokens; remove features.edge")
        self.labels.allocate(n_node, n_edge, n_labels)
        self.weight = nn.Parameter(torch.zeros(self.segments.n_features, len(self.table) - 1))

    def compiled(self) -> LinearForm | None:
        """Return the weights of labels, if their scorer has a form, and of segments."""
        labels, weight = self.labels.compiled(), self.weight
        if labels is None or labels.segments or labels.add_features or not isinstance(weight, nn.Parameter):
            return None
        own, first = self.segments, self.labels.n_inputs
        segments = SegmentForm(own, own.max_length, self.table, first, own.compiled())
        return labels._replace(segment=weight, segments=segments)

    def forward(self, batch: Batch) -> Lattice:
        """Return the lattice of a batch with scores of segments (B, T, D, C)."""
        own, D = self.labels.n_inputs, self.segments.max_length
        lattice, (B, T) = self.labels(batch._replace(inputs=batch.inputs[:own])), batch.sentences.shape
        real = real_tokens(batch.lengths.to(self.weight.device), T).flatten()
        sums = [sum_features(self.weight, one, self.sparse_grad, real) for one in batch.inputs[own : own + D]]
        segment = torch.stack(sums, 1)
        for candidates in batch.inputs[own + D :]:
            pruned = ~candidate_mask(candidates.pad(real), D, self.training)
            segment = segment.masked_fill(pruned.unsqueeze(2), -torch.inf)
        return lattice._replace(segments=SegmentScores(segment.view(B, T, D, -1), self.table))


def candidate_mask(candidates: Ragged, D: int, training: bool) -> Tensor:
    """Return the mask (n, D) of the candidates that begin at each of n tokens, by number of tokens less 1.

    `candidates`: the last input of `SegmentFeatures` with `candidates`. `D`: maximal number of tokens of a segment.
    `training`: include gold segments that are candidates in training only.
    """
    marks = torch.zeros(candidates.n, 2 * D, dtype=torch.bool, device=candidates.ids.device)
    marks[candidates.row_ids, candidates.ids.long()] = True
    return marks[:, :D] | marks[:, D:] if training else marks[:, :D]


def gold_segments(corpus: Corpus) -> Iterator[tuple[int, int]]:
    """Yield first token and end of each segment of the labels of a corpus, if it has any."""
    labels = corpus.columns.get("label")
    if labels is None:
        return
    for start, stop in pairwise(corpus.sentences.tolist()):
        yield from ((start + span.start, start + span.end) for span in spans(labels[start:stop]))
