"""Vectors of words from a pre-trained transformer. A piece is a sub-word token."""

import json
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
from structperc.encoders.pretrained import check_installed, config_of, load_pretrained, positions, untrained_network
from structperc.errors import InputError
from structperc.ragged import Ragged, padded_groups, spread
from structperc.structures import Batch, real_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer


STATE = {
    "config": dict[str, Any],
    "tokenizer": str,
    "unknown": int | None,
    "opening": list[int],
    "closing": list[int],
}
POOLS = ("first", "mean")
Context = Literal["sequence", "document"]
logger = logging.getLogger("pytorch_lightning.structperc")
UNLIMITED = 512  # pieces of a window for models without a limit of positions
CALL = 2**14  # pieces in one call of the model, with padding
CPU_CALL = 2**10  # on CPUs, where larger calls are slower
PROBED = 100  # words that are tokenised to find the special tokens


class Transformer(Encoder):
    """Hugging Face encoder with a vector for each word, from its sub-word tokens. Devlin et al. 2019, section 5.3.

    Words are tokenised one by one, like `is_split_into_words` of a fast tokenizer; byte-level tokenizers (RoBERTa) get
    a space before each word. A word without sub-word tokens, such as a control character, becomes the unknown token.
    Words that are longer than a window are truncated.

    Sequences longer than a window are split at word boundaries into overlapping windows; the vector of a word comes
    from the window in which it has most context. Windows do not cross sequences, so vectors do not depend on the batch.

    With `context="document"` each sentence is encoded between the pieces before and after it in its document, as in
    FLERT (Schweter & Akbik 2020), whether a sequence is a sentence or a document. A sentence without a document has no
    context, and a sentence longer than a window has the windows of a long sequence.

    Weights are float32, vectors have the precision of autocast. Saved taggers contain the network and the tokenizer:
    neither the folder nor the hub is needed to load them.

    Args:
        model: folder of a saved model and its tokenizer (environment variables are expanded), or an id of the hub.
        revision: branch, tag or commit of the hub.
        pool: vector of a word: that of its "first" sub-word token, or the "mean" over its tokens.
        window: sub-word tokens of a window with its special tokens; by default the number of positions of the model,
            512 if unlimited.
        overlap: maximal number of sub-word tokens that neighbouring windows share; by default a quarter of a window.
        frozen: do not train the weights, and run without dropout.
        context: the text that determines the vector of a word: its "sequence", or its sentence with the neighbouring
            sentences of its "document".
        context_pieces: maximal number of sub-word tokens on each side of a sentence; for the context "document".

    Raises:
        InputError: missing library, unknown pool or context, or sizes below 1; in training, a model that cannot be
            loaded or is not an encoder, windows larger than its positions or not larger than their overlap; in
            `encode_inputs`, a word without sub-word tokens if the tokenizer has no unknown token.

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
        context: Context = "sequence",
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
        if context not in get_args(Context):
            raise InputError(f"Transformer: context must be one of {', '.join(get_args(Context))}, got {context!r}")
        if context_pieces < 1:
            raise InputError(f"Transformer: context_pieces must be >= 1, got {context_pieces}")
        self.model, self.revision, self.pool = model, revision, pool
        self.network = None
        self.window, self.overlap, self.frozen = window, overlap, frozen
        self.context, self.context_pieces = context, context_pieces
        self.extent: Extent = context
        self.n_inputs = 1 if context == "sequence" else 3

    # -- state ---------------------------------------------------------------------------------------------------

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Load tokenizer and weights; only the first words of the training data are used."""
        if self.context == "document" and len(np.unique(corpus.documents)) == len(corpus.sentences) - 1:
            logger.warning("%s: each document has one sentence; context: document has no effect", corpus.name)
        network, found = load_pretrained(self.model, self.revision)
        tokenizer = found.backend_tokenizer
        tokenizer.no_padding()  # it may have been saved with padding and truncation
        tokenizer.no_truncation()
        words = corpus.columns["word"][:PROBED]
        _check_characters(corpus, words)
        opening, closing = _frame(tokenizer, words)
        state = {"tokenizer": tokenizer.to_str(), "unknown": found.unk_token_id, "opening": opening}
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
        self.spaced = _is_byte_level(state["tokenizer"])
        self.network = network.requires_grad_(not self.frozen)
        if isinstance(pooler := getattr(network, "pooler", None), nn.Module):
            pooler.requires_grad_(False)  # unused, so that weight decay would only shrink it
        self.width = network.config.hidden_size
        self.max_pieces = self._max_pieces(positions(network))
        self.shared = self.max_pieces // 4 if self.overlap is None else self.overlap
        if self.shared >= self.max_pieces:
            raise InputError(
                f"Transformer: overlap must be < {self.max_pieces}, the words' pieces of a window; lower it"
            )
        self.train(self.training)

    def _max_pieces(self, limit: int | None) -> int:
        """Return the number of pieces in a window without its special tokens."""
        size, special = self.window or limit or UNLIMITED, len(self.opening) + len(self.closing)
        if limit is not None and size > limit:
            raise InputError(f"Transformer: window must be <= {limit}, the positions of {self.model}; got {size}")
        if size <= special:
            raise InputError(f"Transformer: window must be > {special}, the special tokens in it; got {size}")
        return size - special

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the module; a frozen network stays in evaluation mode, without dropout."""
        super().train(mode)
        if self.frozen and self.network is not None:
            self.network.eval()
        return self

    # -- words to pieces ------------------------------------------------------------------------------------

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the pieces of each word, at least one and at most as many as a window has.

        With `context="document"` two more inputs are the pieces before and after each sentence, at its first and at its
        last word.
        """
        words = corpus.columns["word"]
        known = list(dict.fromkeys(words))
        _check_characters(corpus, known)
        written = [[f" {word}" if self.spaced and word[:1].strip() else word] for word in known]
        found = self.tokenizer.encode_batch(written, is_pretokenized=True, add_special_tokens=False)
        pieces = [
            one.ids[: self.max_pieces] or self._unknown(word, corpus) for word, one in zip(known, found, strict=True)
        ]
        ids = torch.tensor([piece for ids in pieces for piece in ids], dtype=torch.int32)
        distinct = Ragged.from_counts(ids, torch.tensor(list(map(len, pieces)), dtype=torch.int64))
        number = {word: i for i, word in enumerate(known)}
        own = distinct.select(torch.tensor([number[word] for word in words], dtype=torch.int64))
        if self.context == "sequence":
            return [own]
        return [own, *pieces_around(corpus, own, self.context_pieces, self.max_pieces)]

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor:
        """Return the number of sub-word tokens of each token, with those of its context."""
        return torch.stack([one.counts for one in inputs]).sum(0)

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
        offsets, *context = (one.offsets.cpu().numpy().astype(np.int64) for one in batch.inputs)
        if len(offsets) == 1:
            B, T = batch.sentences.shape
            return torch.zeros(B, T, self.width, device=pieces.ids.device)
        windows = PieceWindows.over(offsets, self._lengths(batch), self.max_pieces, self.shared)
        special = pieces.ids.new_tensor([*self.opening, *self.closing])
        tokens = torch.cat([pieces.ids, special, *(one.ids for one in around)]).long()
        hidden, begin = self._run(tokens, windows.layout(offsets, len(self.opening), len(self.closing), *context))
        window, before = windows.seats(offsets)
        if context:
            begin += np.diff(context[0])[windows.first]
        first = begin[window] + len(self.opening) + before
        counts = np.ones_like(first) if self.pool == "first" else np.diff(offsets)
        return padded_vectors(_means(hidden, first, counts), batch)

    def _lengths(self, batch: Batch) -> np.ndarray:
        """Return the number of words of each text that is encoded: the sequences, or the sentences with context."""
        if self.context == "sequence":
            return batch.lengths.cpu().numpy()
        first = batch.first[real_tokens(batch.lengths, batch.first.shape[1])]
        return np.diff(first.cpu().numpy().nonzero()[0], append=len(first))

    def _run(self, tokens: Tensor, windows: Ragged) -> tuple[Tensor, np.ndarray]:
        """Run the network on windows, each a list of indices of tokens; windows of similar length share a call.

        Returns:
            vectors (M, D), and the row in which each window begins, (W,) int64.
        """
        padding = max(getattr(self.network.config, "pad_token_id", None) or 0, 0)
        lengths = windows.counts.numpy()
        order, found, begin, rows = np.argsort(-lengths, kind="stable"), [], np.empty_like(lengths), 0
        for start, stop in padded_groups(lengths[order], CPU_CALL if tokens.device.type == "cpu" else CALL):
            part = windows.select(torch.from_numpy(order[start:stop]))
            real = real_tokens(part.counts, int(part.counts.max())).to(tokens.device)
            ids = tokens.new_full(real.shape, padding).masked_scatter(real, tokens[part.ids.to(tokens.device)])
            hidden = self.network(input_ids=ids, attention_mask=real.long()).last_hidden_state
            begin[order[start:stop]] = rows + np.arange(len(ids)) * ids.shape[1]
            found.append(hidden.flatten(0, 1))
            rows += ids.numel()
        return torch.cat(found), begin


def _means(vectors: Tensor, first: np.ndarray, counts: np.ndarray) -> Tensor:
    """Return the mean (n, D) of vectors[first[i] : first[i] + counts[i]] for each i; first, counts (n,) int64."""
    _, places = spread(torch.from_numpy(counts), torch.from_numpy(first))
    bags = Ragged.from_counts(places, torch.from_numpy(counts))
    ids, offsets = bags.ids.to(vectors.device), bags.offsets.to(vectors.device)
    return nn.functional.embedding_bag(ids, vectors, offsets, mode="mean", include_last_offset=True)


def _frame(tokenizer: "Tokenizer", words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the special tokens that the tokenizer adds before and after these words."""
    found = tokenizer.encode(words, is_pretokenized=True)
    own = [place for place, word in enumerate(found.word_ids) if word is not None]
    if not own:
        raise InputError(f"Transformer: the tokenizer produces no subword tokens for {' '.join(words[:5])} ...")
    return found.ids[: own[0]], found.ids[own[-1] + 1 :]


def _check_characters(corpus: Corpus, words: Iterable[str]) -> None:
    """Raise InputError for words with halves of surrogate pairs, which tokenizers reject."""
    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            place = corpus.where(list(corpus.columns["word"]).index(word))
            what = f"word {word!a} has half of a surrogate pair, which is not a character"
            raise InputError(f"{place}: {what}; correct the text, or decode it with errors='replace'")


def _is_byte_level(tokenizer: str) -> bool:
    """Return True if a tokenizer, given as JSON, splits words into bytes, as in GPT-2 and RoBERTa."""
    step = json.loads(tokenizer)["pre_tokenizer"] or {}
    return any(one["type"] == "ByteLevel" for one in step.get("pretokenizers", [step]) if one)
