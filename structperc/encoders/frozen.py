"""Vectors of a frozen encoder, computed once for each corpus."""

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import xxhash
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from structperc.constructors import class_path_of, constructor_arguments
from structperc.data.corpus import Corpus
from structperc.data.json_data import check_fields
from structperc.data.output import open_atomic, write_errors
from structperc.data.text_files import expand_path
from structperc.encoders.base import Encoder, TextModule, TokenEmbedder, check_share
from structperc.errors import InputError
from structperc.progress import bar
from structperc.ragged import Ragged
from structperc.structures import Batch, Words, padded_places

BATCH = 64  # sequences encoded together
VECTORS = "vectors"  # tensor in the files of a cache
PLAIN = (str, int, float, bool, type(None))

logger = logging.getLogger(f"pytorch_lightning.{__name__}")


class FrozenVectors(TokenEmbedder):
    """Vectors of an encoder that is not trained, each computed once and kept in half precision.

    vector of a token = ReLU(W dropout(h) + b), with the encoder's vectors h, and W and b trained; without a width it is
    h itself. Training takes seconds per epoch, since the encoder runs only when a corpus is read. As a token embedder
    it is an input of `Window` and `BiLSTM`, along with others. Vectors take 2 bytes per component: 205 MB for 100,000
    tokens and 4 layers of 256 units. They are computed on a GPU if there is one.

    Args:
        encoder: encoder of the tokens, such as `Transformer`; `layers` concatenates several layers, which help here.
        width: D, dimension of the projected vectors; None for vectors that are not projected, as `VectorLinear` reads.
        dropout: share of the components of h that are dropped in training.
        cache: folder for the vectors of all corpora that training reads, for later runs; environment variables are
            expanded. Files depend on the encoder and the corpus. In evaluation mode, such as that of loaded models,
            files are read but not written.

    Raises:
        InputError: a width below 1, or an invalid share; the errors of the encoder; a cache that cannot be written.

    Example:
        >>> from structperc.data import Corpus
        >>> from structperc.encoders import BiLSTM, FrozenVectors, Window, WordEmbedding
        >>> embedder = FrozenVectors(Window([WordEmbedding(width=4)], window_size=1), width=3)
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "slept"]}])
        >>> embedder.build_vocabulary(corpus)
        >>> (vectors,) = embedder.encode_inputs(corpus)
        >>> vectors.ids.shape, embedder(vectors).shape  # 3 words of 4 components, projected
        (torch.Size([2, 12]), torch.Size([2, 3]))
    """

    size: int  # dimension of the encoder's vectors
    width: int | None  # type: ignore[assignment]
    projection: nn.Linear | None

    def __init__(
        self, encoder: Encoder, width: int | None = 200, dropout: float = 0.3, cache: str | None = None
    ) -> None:
        super().__init__()
        if width is not None and width < 1:
            raise InputError(f"FrozenVectors: width must be >= 1, got {width}")
        check_share("FrozenVectors: dropout", dropout)
        self.encoder, self.width, self.dropout, self.cache = encoder, width, dropout, cache
        self.extent = encoder.extent

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabulary of the encoder, and create the projection."""
        self.encoder.build_vocabulary(corpus)
        self.load_state({"width": self.encoder.width})

    def to_state(self) -> dict[str, int] | None:
        """Return the dimension of the encoder's vectors; None before `build_vocabulary`."""
        return {"width": self.size} if hasattr(self, "size") else None

    def load_state(self, state: dict[str, int]) -> None:
        """Create the projection.

        Raises:
            InputError: an invalid state.
        """
        check_fields(state, {"width": int}, "FrozenVectors")
        self.size = state["width"]
        self.projection = None if self.width is None else nn.Linear(self.size, self.width)
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the module; the encoder stays in evaluation mode, and its weights have no gradients."""
        super().train(mode)
        self.encoder.eval().requires_grad_(False)
        return self

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the encoder's vectors of the tokens, (n, D'), as the bits of float16 numbers."""
        self.train(self.training)
        inputs = self.encoder.encode_inputs(corpus)
        vectors = self._vectors(corpus, inputs) if self.cache is None else self._cached(corpus, inputs)
        return [Ragged.from_counts(vectors.view(torch.int16), torch.ones(corpus.tokens, dtype=torch.int64))]

    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of n tokens."""
        if self.projection is None:
            return numbers.ids.view(torch.float16).to(torch.get_default_dtype())
        hidden = numbers.ids.view(torch.float16).to(self.projection.weight.dtype)
        return self.projection(nn.functional.dropout(hidden, self.dropout, self.training)).relu()

    # -- vectors of a corpus -------------------------------------------------------------------------------------

    @torch.no_grad()
    def _vectors(self, corpus: Corpus, inputs: Sequence[Ragged]) -> Tensor:
        """Return the encoder's vectors (N, D') float16 of all tokens."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        before = next((p.device for p in self.encoder.parameters()), torch.device("cpu"))
        vectors = torch.zeros(corpus.tokens, self.size, dtype=torch.float16)
        self.encoder.to(device)
        try:
            with bar(None, "computing vectors", corpus.tokens) as shown:
                for batch, places, real in _batches(corpus, inputs, device):
                    vectors[places[real]] = self.encoder(batch)[real.to(device)].half().cpu()
                    shown.update(int(real.sum()))
        finally:
            self.encoder.to(before)
        return vectors

    def _cached(self, corpus: Corpus, inputs: Sequence[Ragged]) -> Tensor:
        """Return the vectors of a file, or compute them and write the file."""
        folder = expand_path(str(self.cache))
        file = folder / f"vectors-{_digest(self.encoder, corpus, inputs)}.safetensors"
        if (cached := _read(file, (corpus.tokens, self.size))) is not None:
            return cached
        vectors = self._vectors(corpus, inputs)
        if self.training:
            with write_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
            with open_atomic(file) as out:
                out.write(save({VECTORS: vectors}))
        return vectors


def _read(file: Path, shape: tuple[int, int]) -> Tensor | None:
    """Return the vectors of a file; None if it is missing or damaged."""
    if not file.exists():
        return None
    try:
        vectors = load_file(file)[VECTORS]
        if vectors.shape == shape and vectors.dtype == torch.float16:
            return vectors
        reason = f"vectors {vectors.dtype} {tuple(vectors.shape)}"
    except (SafetensorError, KeyError, OSError) as error:
        reason = str(error)
    logger.warning("%s: this file is damaged (%s); writing it again", file, reason)
    return None


def _digest(encoder: Encoder, corpus: Corpus, inputs: Sequence[Ragged]) -> str:
    """Return a checksum of all that vectors depend on: options and weights of an encoder, its inputs, boundaries."""
    parts = [module for module in encoder.modules() if isinstance(module, TextModule)]
    total = xxhash.xxh3_128(json.dumps([[class_path_of(type(part)), _plain_options(part)] for part in parts]).encode())
    tensors = [
        *encoder.state_dict().values(),
        *(tensor for numbers in inputs for tensor in (numbers.ids, numbers.offsets)),
    ]
    arrays = [tensor.cpu().contiguous().numpy() for tensor in tensors]
    for array in (*arrays, *(np.asarray(bounds, np.int64) for bounds in (corpus.starts, corpus.sentences))):
        total.update(f"{array.dtype} {array.shape}".encode())
        total.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return total.hexdigest()


def _plain_options(part: TextModule) -> dict[str, Any]:
    return {name: value for name, value in constructor_arguments(part).items() if isinstance(value, PLAIN)}


def _batches(corpus: Corpus, inputs: Sequence[Ragged], device: str) -> Iterator[tuple[Batch, Tensor, Tensor]]:
    """Yield batches without features, longest sequences first, and the indices (B, T) of their tokens with a mask."""
    begins = np.zeros(corpus.tokens + 1, bool)  # True where a sentence begins, and at the end
    begins[corpus.sentences], begins[corpus.starts] = True, True
    opens, order = torch.from_numpy(begins), np.argsort(-np.diff(corpus.starts), kind="stable")
    for rows in np.split(order, range(BATCH, len(order), BATCH)):
        starts, stops = corpus.starts[rows], corpus.starts[rows + 1]
        places, real = padded_places(torch.from_numpy(starts), torch.from_numpy(stops - starts))
        first, last = opens[places] & real, opens[places + 1] & real
        none = torch.zeros(0, dtype=torch.int64)
        batch = Batch(
            nodes=Ragged(none, torch.zeros(int(real.sum()) + 1, dtype=torch.int64)),
            edges=None,
            lengths=torch.from_numpy(stops - starts),
            gold=None,
            sentences=(first.cumsum(1) - 1) * real,
            first=first,
            last=last,
            rows=torch.from_numpy(rows),
            words=Words(*torch.zeros(4, *real.shape, dtype=torch.int64)),
            inputs=tuple(numbers.take(starts, stops) for numbers in inputs),
        )
        yield _to(batch, device), places, real


def _to(batch: Batch, device: str) -> Batch:
    """Return what encoders read of a batch on a device."""
    inputs = tuple(
        numbers._replace(ids=numbers.ids.to(device), offsets=numbers.offsets.to(device)) for numbers in batch.inputs
    )
    names = ("lengths", "sentences", "first", "last")
    return batch._replace(inputs=inputs, **{name: getattr(batch, name).to(device) for name in names})
