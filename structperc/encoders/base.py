"""Base classes of modules that compute vectors of text."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.data.splits import Extent, widest
from structperc.errors import InputError
from structperc.ragged import Ragged
from structperc.structures import Batch, real_tokens


class TextModule(nn.Module, ABC):
    """Base class of modules that read text.

    `build_vocabulary` is called once, with the training data; `encode_inputs` converts the strings of each corpus to
    numbers. The state, such as a vocabulary, is saved with the weights: `to_state` returns it, `load_state` restores
    it. Subclasses store each argument of their constructor in an attribute with the same name, so that it can be saved.
    Weights exist after `build_vocabulary` or `load_state`, weights of features after `allocate`.

    Example:
        >>> import torch
        >>> from structperc.data import Corpus
        >>> from structperc.encoders.base import TextModule
        >>> from structperc.ragged import Ragged
        >>> class WordLength(TextModule):
        ...     width = 1
        ...     def encode_inputs(self, corpus):
        ...         lengths = torch.tensor([len(word) for word in corpus.columns["word"]])
        ...         return [Ragged.from_counts(lengths, torch.ones_like(lengths))]
        >>> WordLength().encode_inputs(Corpus.from_sentences([{"word": ["Anna", "slept"]}]))[0].ids
        tensor([4, 5])
    """

    width: int  # dimension of the vectors
    n_inputs = 1  # number of `Ragged` that `encode_inputs` returns
    extent: Extent = "sequence"  # extent of the text that determines the vectors of a token

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabulary from the training data; by default nothing."""

    @abstractmethod
    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the numbers of the tokens of a corpus, one Ragged for each input of the module."""

    def allocate(self, n_features: int) -> None:
        """Create weights for the node features of the tagger; by default do nothing."""

    def source_files(self) -> list[str]:
        """Return the files and folders that `build_vocabulary` reads; by default none."""
        return []

    def to_state(self) -> Any:
        """Return the state after `build_vocabulary` as plain JSON types; None if there is none."""
        return None

    def load_state(self, state: Any) -> None:
        """Restore the state that `to_state` returned."""


class TokenEmbedder(TextModule):
    """Base class of token embedders, whose vectors do not depend on the context.

    `forward(numbers)` returns the vectors (n, D) of the n real tokens. A token embedder has one input, or none if it
    reads the features of the tagger.
    """

    def numbers(self, batch: Batch) -> Ragged:
        """Return the argument of `forward` from a batch with the `inputs` of this embedder."""
        return batch.inputs[0]

    @abstractmethod
    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of the n real tokens."""


class Encoder(TextModule):
    """Base class of encoders, whose vectors depend on the context.

    `forward(batch)` returns vectors (B, T, D), 0 in the padding; `batch.inputs` are the inputs of this encoder.
    """

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token, (N,) int64; None if tokens are not split.

        Mini-batches have sequences with similar numbers of sub-word tokens. `inputs` is a result of `encode_inputs`.
        """
        return None

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return the vectors (B, T, D) of the tokens."""


class ContextEncoder(Encoder):
    """Base class of encoders over token embedders, whose vectors are concatenated.

    A subclass sets `width` and defines `forward`, which begins with `embed`.

    Args:
        inputs: token embedders.

    Raises:
        InputError: no input.
    """

    def __init__(self, inputs: list[TokenEmbedder]) -> None:
        super().__init__()
        if not inputs:
            raise InputError("inputs must contain at least one token embedder, such as WordEmbedding")
        self.inputs = nn.ModuleList(inputs)
        self.n_inputs = sum(embedder.n_inputs for embedder in inputs)
        self.input_width = sum(embedder.width for embedder in inputs)
        self.extent = widest(embedder.extent for embedder in inputs)

    @property
    def embedders(self) -> list[TokenEmbedder]:
        """The token embedders, in the order of their vectors."""
        return cast(list[TokenEmbedder], list(self.inputs))

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabularies of all token embedders."""
        for embedder in self.embedders:
            embedder.build_vocabulary(corpus)

    def allocate(self, n_features: int) -> None:
        """Create the weights for features of all token embedders."""
        for embedder in self.embedders:
            embedder.allocate(n_features)

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of all token embedders, concatenated."""
        return [numbers for embedder in self.embedders for numbers in embedder.encode_inputs(corpus)]

    def embed(self, batch: Batch) -> Tensor:
        """Return the vectors (B, T, D) of the tokens without context, 0 in the padding."""
        ends = list(accumulate((embedder.n_inputs for embedder in self.embedders), initial=0))
        batches = [batch._replace(inputs=batch.inputs[a:b]) for a, b in pairwise(ends)]
        vectors = [embedder(embedder.numbers(part)) for embedder, part in zip(self.embedders, batches, strict=True)]
        return padded_vectors(torch.cat(vectors, 1), batch)


def padded_vectors(vectors: Tensor, batch: Batch) -> Tensor:
    """Return (B, T, D) with the vectors (n, D) of the real tokens of a batch and zeros in the padding."""
    (B, T), D = batch.sentences.shape, vectors.shape[1]
    real = real_tokens(batch.lengths.to(vectors.device), T)
    places = real.flatten().nonzero_static(size=vectors.shape[0]).squeeze(1)  # needs no synchronisation
    return vectors.new_zeros(B * T, D).index_copy(0, places, vectors).view(B, T, D)


def variational_dropout(vectors: Tensor, share: float, training: bool) -> Tensor:
    """Drop the same components at all tokens of a sequence. Gal & Ghahramani 2016.

    Argument and result are (B, T, D); the remaining components are scaled by 1 / (1 - share).
    """
    if not training or share == 0:
        return vectors
    kept = torch.rand(vectors.shape[0], 1, vectors.shape[2], device=vectors.device) >= share
    return vectors * (kept.to(vectors.dtype) / (1 - share))


def check_share(name: str, share: float) -> None:
    """Raise InputError unless 0 <= share < 1."""
    if not 0 <= share < 1:
        raise InputError(f"{name} must be >= 0 and < 1, got {share}: it is the share of dropped components")
