"""Vectors of words from a pre-trained transformer. A piece is a sub-word token."""

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.data.json_data import check_fields
from structperc.data.splits import Extent
from structperc.encoders.base import Encoder, padded_vectors
from structperc.encoders.piece_windows import PieceWindows, pieces_around
from structperc.encoders.pretrained import (
    check_installed,
    config_of,
    load_pretrained,
    network_parts,
    positions,
    reads_spaces,
    untrained_network,
)
from structperc.errors import InputError
from structperc.ragged import Ragged, padded_groups, spread
from structperc.structures import Batch, real_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast


STATE = {
    "config": dict[str, Any],
    "tokenizer": str,
    "unknown": int | None,
    "opening": list[int],
    "closing": list[int],
}
POOLS = ("first", "mean")
Context = Literal["sequence", "sentence", "document"]
logger = logging.getLogger("pytorch_lightning.structperc")
UNLIMITED = 512  # pieces of a window for models without a limit of positions
CALL = 2**14  # pieces in one call of the model, with padding
CPU_CALL = 2**10  # on CPUs, where larger calls are slower
PROBED = 100  # words that are tokenised to find the special tokens


class Transformer(Encoder):
    """Hugging Face encoder with a vector for each word, from its sub-word tokens. Devlin et al. 2019, section 5.3.

    Words are tokenised one by one, like `is_split_into_words` of a fast tokenizer; byte-level tokenizers (RoBERTa,
    ModernBERT) get a space before each word. A word without sub-word tokens, such as a control character, becomes the
    unknown token. Words that are longer than a window are truncated. Sequences longer than a window are split at word
    boundaries into overlapping windows; the vector of a word comes from the window in which it has most context.
    Windows do not cross sequences, so vectors do not depend on the batch.

    With `within="document"` each sentence is encoded between the pieces before and after it in its document, as in
    FLERT (Schweter & Akbik 2020), whether a sequence is a sentence or a document. A sentence without a document has no
    context, and a sentence longer than a window has the windows of a long sequence. Weights are float32, vectors have
    the precision of autocast. Saved taggers contain the network and the tokenizer: neither the folder nor the hub is
    needed to load them.

    Args:
        model: folder of a saved model and its tokenizer, or an id of the hub. Environment variables are expanded; with
            a default, as in "${STRUCTPERC_ENCODER:-google-bert/bert-base-cased}", they may be unset.
        revision: branch, tag or commit of the hub.
        pool: vector of a word: that of its "first" sub-word token, or the "mean" over its tokens.
        window: sub-word tokens of a window with its special tokens; by default the number of positions of the model,
            512 if unlimited.
        overlap: maximal number of sub-word tokens that neighbouring windows share; by default a quarter of a window.
        frozen: do not train the weights, and run without dropout.
        frozen_layers: number of lowest layers that are frozen, together with the embeddings; 0 freezes only the
            embeddings, None nothing.
        layers: number of last layers whose vectors are concatenated.
        within: context of a word: its "sequence", only its "sentence", or its sentence with the neighbouring sentences
            of its "document". With the latter two a tagger gives the same scores to sentences and to documents.
        context_pieces: maximal number of sub-word tokens on each side of a sentence within a document.

    Raises:
        InputError: missing library, unknown pool or `within`, or sizes below 1; in training, a model that cannot be
            loaded or is not an encoder, more layers than it has, also frozen ones, windows larger than its positions or
            not larger than their overlap; in `encode_inputs`, a word without sub-word tokens if the tokenizer has no
            unknown token.

    Example:
        >>> from structperc.encoders import Transformer
        >>> encoder = Transformer("bert-base-cased", pool="mean", overlap=64)  # loaded by `build_vocabulary`
        >>> encoder.source_files()
        ['bert-base-cased']
    """

    network: Any  # an nn.Module; None before `build_vocabulary` or `load_state`
    tokenizer: "Tokenizer"

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        pool: Literal["first", "mean"] = "first",
        window: int | None = None,
        overlap: int | None = None,
        frozen: bool = False,
        layers: int = 1,
        within: Context = "sequence",
        frozen_layers: int | None = None,
        context_pieces: int = 64,
    ) -> None:
        super().__init__()
        check_installed()
        if pool not in POOLS:
            raise InputError(f"Transformer: pool must be one of {', '.join(POOLS)}, got {pool!r}")
        if window is not None and window < 1:
            raise InputError(f"Transformer: window must be >= 1, got {window}")
        if overlap is not None and overlap < 0:
            raise InputError(f"Transformer: overlap must be >= 0, got {overlap}")
        if layers < 1:
            raise InputError(f"Transformer: layers must be >= 1, got {layers}")
        if within not in get_args(Context):
            raise InputError(f"Transformer: within must be sequence, sentence or document, got {within!r}")
        if context_pieces < 1:
            raise InputError(f"Transformer: context_pieces must be >= 1, got {context_pieces}")
        if frozen_layers is not None and frozen_layers < 0:
            raise InputError(f"Transformer: frozen_layers must be >= 0, got {frozen_layers}")
        self.model, self.revision, self.pool = model, revision, pool
        self.network = None
        self._frozen_parts: list[nn.Module] = []
        self.window, self.overlap = window, overlap
        self.frozen, self.frozen_layers = frozen, frozen_layers
        self.layers, self.within, self.context_pieces = layers, within, context_pieces
        self.extent: Extent = "document" if within == "document" else "sequence"
        self.n_inputs = 3 if within == "document" else 1

    # -- state ---------------------------------------------------------------------------------------------------

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Load tokenizer and weights; only the first words of the training data are used."""
        if self.within == "document" and len(np.unique(corpus.documents)) == len(corpus.sentences) - 1:
            logger.warning("%s: each document has one sentence; within: document has no effect", corpus.name)
        words = corpus.columns["word"][:PROBED]
        _check_characters(corpus, words)
        self.set_network(*load_pretrained(self.model, self.revision), words)

    def set_network(self, network: nn.Module, tokenizer: "PreTrainedTokenizerFast", words: Sequence[str]) -> None:
        """Use a network and its tokenizer; `words` show which special tokens the tokenizer adds.

        Raises:
            InputError: the tokenizer has no subword tokens for the words; see also the constructor.
        """
        from tokenizers import Tokenizer

        backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        backend.no_padding()  # it may have been saved with padding and truncation
        backend.no_truncation()
        opening, closing = _frame(backend, words)
        state = {"tokenizer": backend.to_str(), "unknown": tokenizer.unk_token_id, "opening": opening}
        self._begin(network, {**state, "closing": closing})

    def source_files(self) -> list[str]:
        """Return the folder or hub id of the network."""
        return [self.model]

    def to_state(self) -> dict[str, Any] | None:
        """Return the configuration of the network, the tokenizer as JSON, and the ids of special tokens."""
        if self.network is None:
            return None
        ids = {"unknown": self.unknown, "opening": self.opening, "closing": self.closing}
        return {"config": config_of(self.network), "tokenizer": self.tokenizer.to_str(), **ids}

    def load_state(self, state: dict[str, Any]) -> None:
        """Create the network with random weights.

        Raises:
            InputError: an invalid state.
        """
        check_fields(state, STATE, "Transformer")
        self._begin(untrained_network(state["config"]), state)

    def _begin(self, network: Any, state: dict[str, Any]) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_str(state["tokenizer"])
        self.unknown, self.opening, self.closing = (state[key] for key in ("unknown", "opening", "closing"))
        self.spaced = reads_spaces(self.tokenizer)
        self.network = network
        self.freeze(self.frozen_layers)
        self._check_layers(network)
        self.width = self.layers * network.config.hidden_size
        self.max_pieces = self._max_pieces(positions(network))
        self.shared = self.max_pieces // 4 if self.overlap is None else self.overlap
        if self.shared >= self.max_pieces:
            raise InputError(
                f"Transformer: overlap must be < {self.max_pieces}, the words' pieces of a window; lower it"
            )

    def _check_layers(self, network: Any) -> None:
        if self.layers > 1 and self.layers > (layers := network.config.num_hidden_layers):
            raise InputError(f"Transformer: layers must be <= {layers}, those of {self.model}; got {self.layers}")

    def _max_pieces(self, limit: int | None) -> int:
        """Return the number of pieces in a window without its special tokens."""
        size, special = self.window or limit or UNLIMITED, len(self.opening) + len(self.closing)
        if limit is not None and size > limit:
            raise InputError(f"Transformer: window must be <= {limit}, the positions of {self.model}; got {size}")
        if size <= special:
            raise InputError(f"Transformer: window must be > {special}, the special tokens in it; got {size}")
        return size - special

    def freeze(self, layers: int | None) -> None:
        """Freeze the embeddings and this number of lowest layers, and train the others; None: train all.

        Frozen parts have no gradients and no dropout. A network with the option `frozen` stays frozen.

        Raises:
            InputError: the network has fewer layers.
        """
        parts = network_parts(self.network)
        if layers is not None and layers > self.n_layers:
            raise InputError(
                f"Transformer: frozen_layers must be <= {self.n_layers}, the layers of {self.model}; got {layers}"
            )
        depth = -1 if layers is None else layers
        self._frozen_parts = [self.network] if self.frozen else [part for part, layer in parts if layer <= depth]
        self.network.requires_grad_(True)
        for part in self._frozen_parts:
            part.requires_grad_(False)
        if isinstance(pooler := getattr(self.network, "pooler", None), nn.Module):
            pooler.requires_grad_(False)  # unused, so that weight decay would only shrink it
        self.train(self.training)

    @property
    def n_layers(self) -> int:
        """The number of layers of the network."""
        return max((depth for _, depth in network_parts(self.network)), default=0)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the module; frozen parts stay in evaluation mode, without dropout."""
        super().train(mode)
        for part in self._frozen_parts:
            part.eval()
        return self

    # -- words to pieces ------------------------------------------------------------------------------------

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the pieces of each word, at least one and at most as many as a window has.

        With `within="document"` two more inputs are the pieces before and after each sentence, at its first and at its
        last word.
        """
        words = corpus.columns["word"]
        vocabulary = list(dict.fromkeys(words))
        _check_characters(corpus, vocabulary)
        written = [[f" {word}" if self.spaced and word[:1].strip() else word] for word in vocabulary]
        encodings = self.tokenizer.encode_batch(written, is_pretokenized=True, add_special_tokens=False)
        pieces = [
            encoding.ids[: self.max_pieces] or self._unknown(word, corpus)
            for word, encoding in zip(vocabulary, encodings, strict=True)
        ]
        ids = torch.tensor([piece for ids in pieces for piece in ids], dtype=torch.int32)
        distinct = Ragged.from_counts(ids, torch.tensor(list(map(len, pieces)), dtype=torch.int64))
        number = {word: i for i, word in enumerate(vocabulary)}
        word_pieces = distinct.select(torch.tensor([number[word] for word in words], dtype=torch.int64))
        if self.within != "document":
            return [word_pieces]
        return [word_pieces, *pieces_around(corpus, word_pieces, self.context_pieces, self.max_pieces)]

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor:
        """Return the number of sub-word tokens of each token, with those of its context."""
        return torch.stack([numbers.counts for numbers in inputs]).sum(0)

    def _unknown(self, word: str, corpus: Corpus) -> list[int]:
        if self.unknown is None:
            place = corpus.where(corpus.columns["word"].index(word))
            raise InputError(
                f"{place}: the tokenizer of {self.model} produces no subword tokens for {word!r} "
                "and has no unknown token; remove the word"
            )
        return [self.unknown]

    # -- pieces to vectors ----------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Tensor:
        """Return the vectors (B, T, D) of the words, 0 in the padding."""
        pieces, *around = batch.inputs
        offsets, *context = (numbers.offsets.cpu().numpy().astype(np.int64) for numbers in batch.inputs)
        if len(offsets) == 1:
            B, T = batch.sentences.shape
            return torch.zeros(B, T, self.width, device=pieces.ids.device)
        windows = PieceWindows.over(offsets, self._context_lengths(batch), self.max_pieces, self.shared)
        special = pieces.ids.new_tensor([*self.opening, *self.closing])
        tokens = torch.cat([pieces.ids, special, *(one.ids for one in around)]).long()
        hidden, begin = self._run(tokens, windows.layout(offsets, len(self.opening), len(self.closing), *context))
        window, before = windows.seats(offsets)
        if context:
            begin += np.diff(context[0])[windows.first]
        first = begin[window] + len(self.opening) + before
        counts = np.ones_like(first) if self.pool == "first" else np.diff(offsets)
        return padded_vectors(_means(hidden, first, counts), batch)

    def _context_lengths(self, batch: Batch) -> np.ndarray:
        """Return the numbers of words of all sequences, or of all sentences, in their order."""
        if self.within == "sequence":
            return batch.lengths.cpu().numpy()
        starts = batch.first[real_tokens(batch.lengths, batch.first.shape[1])].nonzero().squeeze(1).cpu().numpy()
        return np.diff(starts, append=int(batch.lengths.sum()))

    def _run(self, tokens: Tensor, windows: Ragged) -> tuple[Tensor, np.ndarray]:
        """Run the network on windows, each a list of indices of tokens; windows of similar length share a call.

        Returns vectors (M, D), and the row in which each window begins, (W,) int64.
        """
        padding = max(getattr(self.network.config, "pad_token_id", None) or 0, 0)
        lengths = windows.counts.numpy()
        order, vectors, begin, rows = np.argsort(-lengths, kind="stable"), [], np.empty_like(lengths), 0
        for start, stop in padded_groups(lengths[order], CPU_CALL if tokens.device.type == "cpu" else CALL):
            part = windows.select(torch.from_numpy(order[start:stop]))
            real = real_tokens(part.counts, int(part.counts.max())).to(tokens.device)
            ids = tokens.new_full(real.shape, padding).masked_scatter(real, tokens[part.ids.to(tokens.device)])
            hidden = self._hidden(ids, real.long())
            begin[order[start:stop]] = rows + np.arange(len(ids)) * ids.shape[1]
            vectors.append(hidden.flatten(0, 1))
            rows += ids.numel()
        return torch.cat(vectors), begin

    def _hidden(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Return the concatenated vectors (W, P, D) of the last layers for tokens (W, P) and their mask."""
        if self.layers == 1:
            return self.network(input_ids=tokens, attention_mask=real).last_hidden_state
        output = self.network(input_ids=tokens, attention_mask=real, output_hidden_states=True)
        return torch.cat(output.hidden_states[-self.layers :], 2)


def _means(vectors: Tensor, first: np.ndarray, counts: np.ndarray) -> Tensor:
    """Return the mean (n, D) of vectors[first[i] : first[i] + counts[i]] for each i; first, counts (n,) int64."""
    _, places = spread(torch.from_numpy(counts), torch.from_numpy(first))
    bags = Ragged.from_counts(places, torch.from_numpy(counts))
    ids, offsets = bags.ids.to(vectors.device), bags.offsets.to(vectors.device)
    return nn.functional.embedding_bag(ids, vectors, offsets, mode="mean", include_last_offset=True)


def _frame(tokenizer: "Tokenizer", words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the special tokens that the tokenizer adds before and after these words."""
    encoding = tokenizer.encode(words, is_pretokenized=True)
    inside = [place for place, word in enumerate(encoding.word_ids) if word is not None]
    if not inside:
        raise InputError(f"Transformer: the tokenizer produces no subword tokens for {' '.join(words[:5])} ...")
    return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]


def _check_characters(corpus: Corpus, words: Iterable[str]) -> None:
    """Raise InputError for words with halves of surrogate pairs, which tokenizers reject."""
    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            place = corpus.where(list(corpus.columns["word"]).index(word))
            what = f"word {word!a} has half of a surrogate pair, which is not a character"
            raise InputError(f"{place}: {what}; correct the text, or decode it with errors='replace'")
