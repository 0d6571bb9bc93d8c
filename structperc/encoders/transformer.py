"""Vectors of words from a pre-trained transformer, and windows over the pieces of long sequences.

N words stand one after the other; word i has the pieces offsets[i]:offsets[i + 1], at least one and at most
`max_pieces`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.data.json_data import check_fields
from structperc.encoders.base import Encoder, padded_vectors
from structperc.encoders.pretrained import check_installed, config_of, load_pretrained, positions, untrained_network
from structperc.errors import InputError
from structperc.ragged import Ragged, spread
from structperc.structures import Batch

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class PieceWindows(NamedTuple):
    """W windows over the words of a batch: window w has the words first[w], ..., stop[w] - 1."""

    first: np.ndarray  # (W,) int64
    stop: np.ndarray  # (W,) int64

    @classmethod
    def over(cls, offsets: np.ndarray, lengths: np.ndarray, max_pieces: int, overlap: int) -> "PieceWindows":
        """Return windows of at most `max_pieces` pieces; neighbours share at most `overlap` pieces, fewer than
        `max_pieces`.

        offsets (N + 1,) int64, lengths (B,) int64 words of each sequence. A sequence that fits is one window, an empty
        one none. The last window of a longer sequence begins as early as it can, so it may share more.
        """
        ends = lengths.cumsum()
        sequences = zip((ends - lengths)[lengths > 0].tolist(), ends[lengths > 0].tolist(), strict=True)
        spans = [span for start, end in sequences for span in _spans(offsets, start, end, max_pieces, overlap)]
        return cls(*np.array(spans, dtype=np.int64).reshape(-1, 2).T)

    def seats(self, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each word the window (N,) where it is farthest from a boundary, and how many pieces precede it.

        The distance is that to the nearer boundary of the window, in pieces; among equal ones the first window counts.
        """
        counts = self.stop - self.first
        window, word = (x.numpy() for x in spread(torch.from_numpy(counts), torch.from_numpy(self.first)))
        before, after = offsets[word] - offsets[self.first[window]], offsets[self.stop[window]] - offsets[word + 1]
        order = np.lexsort((window, -np.minimum(before, after), word))
        best = order[np.diff(word[order], prepend=-1) > 0]
        return window[best], before[best]

    def layout(self, offsets: np.ndarray, opening: int, closing: int) -> np.ndarray:
        """Return what stands at each of the P places of each window, (W, P) int64.

        That is a piece, one of `opening` special tokens before all pieces, of `closing` after them, or padding on the
        right. They are numbered in this order, the padding is the last number.
        """
        pieces = (offsets[self.stop] - offsets[self.first])[:, None]
        place = np.arange(pieces.max(initial=0) + opening + closing) - opening
        special = offsets[-1] + opening
        cases = [place < 0, place < pieces, place < pieces + closing]
        return np.select(
            cases, [special + place, offsets[self.first][:, None] + place, special + place - pieces], special + closing
        )


def _spans(offsets: np.ndarray, start: int, end: int, max_pieces: int, overlap: int) -> Iterator[tuple[int, int]]:
    """(first word, word after the last) of the windows over the words start, ..., end - 1 of one sequence."""
    first = start
    while (stop := int(offsets.searchsorted(offsets[first] + max_pieces, "right")) - 1) < end:
        yield first, stop
        shared = offsets.searchsorted(offsets[stop] - overlap)
        first = int(max(shared, offsets.searchsorted(offsets[stop + 1] - max_pieces)))
    yield int(max(start, offsets.searchsorted(offsets[end] - max_pieces))), end


LEARNED = {
    "config": dict[str, Any],
    "tokenizer": str,
    "unknown": int | None,
    "opening": list[int],
    "closing": list[int],
}
POOLS = ("first", "mean")
UNLIMITED = 512  # pieces of a window, where the positions of a model have no limit
WINDOWS = 32  # that go through the model in one call
PROBED = 100  # words by which it is seen where special tokens stand


class Transformer(Encoder):
    """Words -> sub-word pieces -> a Hugging Face encoder -> a vector for each word. Devlin et al. 2019, section 5.3.

    Each word is cut into pieces by itself, as by a fast tokenizer with `is_split_into_words`; where pieces are bytes
    (RoBERTa), a space is put before it. The unknown token stands for a word without any piece, such as a control
    character. Of a word that is longer than a window the first pieces are kept.

    Sequences that do not fit into one window are cut at word boundaries into windows that overlap; the vector of a word
    is from the window in which it is farthest from a boundary. A window has words of one sequence alone, so vectors do
    not depend on what else is in a batch.

    Weights are float32, vectors have the precision in which the model runs (autocast). Saved taggers are complete:
    they need neither the folder nor the hub again.

    Args:
        model: folder of a saved model and its tokenizer, environment variables expanded, or an id of the hub, where
            `learn` then looks for it.
        revision: branch, tag or commit of the hub.
        pool: vector of a word: that of its first piece, or the mean of its pieces.
        window: pieces of a window with its special tokens; by default as many as the model has positions, 512 when
            they have no limit.
        overlap: pieces that neighbouring windows share at most; by default a quarter of a window.
        frozen: leave the weights, and run without dropout.

    Raises:
        InputError: the library is not installed, another pool, sizes below 1; in training, a model that cannot be
            loaded or is no encoder, windows that are larger than its positions or leave no room beside what they share;
            on reading, a word without pieces where the tokenizer has no unknown token.
    """

    network: Any  # an nn.Module; None before `learn` or `load_state`
    tokenizer: "Tokenizer"

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        pool: Literal["first", "mean"] = "first",
        window: int | None = None,
        overlap: int | None = None,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        check_installed()
        if pool not in POOLS:
            raise InputError(f"Transformer: pool must be one of {', '.join(POOLS)}, got {pool!r}")
        if window is not None and window < 1:
            raise InputError(f"Transformer: window must be >= 1, got {window}")
        if overlap is not None and overlap < 0:
            raise InputError(f"Transformer: overlap must be >= 0, got {overlap}")
        self.model, self.revision, self.pool = model, revision, pool
        self.network = None
        self.window, self.overlap, self.frozen = window, overlap, frozen

    # -- what is learned and saved ---------------------------------------------------------------------------

    def learn(self, corpus: Corpus) -> None:
        """Load tokenizer and weights; of the training data only the first words are looked at."""
        network, found = load_pretrained(self.model, self.revision)
        tokenizer = found.backend_tokenizer
        tokenizer.no_padding()  # whatever it was saved with
        tokenizer.no_truncation()
        words = corpus.columns["word"][:PROBED]
        _check_characters(corpus, words)
        opening, closing = _frame(tokenizer, words)
        learned = {"tokenizer": tokenizer.to_str(), "unknown": found.unk_token_id, "opening": opening}
        self._begin(network, {**learned, "closing": closing})

    def source_files(self) -> list[str]:
        """Return the folder of the network, where `model` names one, so that saved models know what they read."""
        return [self.model]

    def learned(self) -> dict[str, Any] | None:
        """Return the configuration of the network, the tokenizer as its own JSON, and ids of tokens that it adds."""
        if self.network is None:
            return None
        ids = {"unknown": self.unknown, "opening": self.opening, "closing": self.closing}
        return {"config": config_of(self.network), "tokenizer": self.tokenizer.to_str(), **ids}

    def load_state(self, learned: dict[str, Any]) -> None:
        """Make the network without its weights. Raises InputError for anything that `learned` does not give."""
        check_fields(learned, LEARNED, "Transformer")
        self._begin(untrained_network(learned["config"]), learned)

    def _begin(self, network: Any, learned: dict[str, Any]) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_str(learned["tokenizer"])
        self.unknown, self.opening, self.closing = (learned[key] for key in ("unknown", "opening", "closing"))
        self.spaced = _of_bytes(learned["tokenizer"])
        self.network = network.requires_grad_(not self.frozen)
        if isinstance(pooler := getattr(network, "pooler", None), nn.Module):
            pooler.requires_grad_(False)  # nothing reads it, so that it would only decay
        self.width = network.config.hidden_size
        self.max_pieces = self._max_pieces(positions(network))
        self.shared = self.max_pieces // 4 if self.overlap is None else self.overlap
        if self.shared >= self.max_pieces:
            raise InputError(
                f"Transformer: overlap must be < {self.max_pieces}, the words' pieces of a window; lower it"
            )
        self.train(self.training)

    def _max_pieces(self, limit: int | None) -> int:
        """Pieces of words in a window."""
        size, special = self.window or limit or UNLIMITED, len(self.opening) + len(self.closing)
        if limit is not None and size > limit:
            raise InputError(f"Transformer: window must be <= {limit}, the positions of {self.model}; got {size}")
        if size <= special:
            raise InputError(f"Transformer: window must be > {special}, the special tokens in it; got {size}")
        return size - special

    def train(self, mode: bool = True) -> Self:
        """Set the mode as in all modules, but leave a frozen network in evaluation mode, without dropout."""
        super().train(mode)
        if self.frozen and self.network is not None:
            self.network.eval()
        return self

    # -- words -> pieces -------------------------------------------------------------------------------------

    def read(self, corpus: Corpus) -> list[Ragged]:
        """Return one or more pieces for each word, but no more than a window has room for."""
        words = corpus.columns["word"]
        known = list(dict.fromkeys(words))
        _check_characters(corpus, known)
        written = [[f" {word}" if self.spaced and word[:1].strip() else word] for word in known]
        found = self.tokenizer.encode_batch(written, is_pretokenized=True, add_special_tokens=False)
        pieces = [
            one.ids[: self.max_pieces] or self._unknown(word, corpus) for word, one in zip(known, found, strict=True)
        ]
        ids = torch.tensor([piece for ids in pieces for piece in ids], dtype=torch.int32)
        distinct = Ragged.of_counts(ids, torch.tensor(list(map(len, pieces)), dtype=torch.int64))
        number = {word: i for i, word in enumerate(known)}
        return [distinct.select(torch.tensor([number[word] for word in words], dtype=torch.int64))]

    def _unknown(self, word: str, corpus: Corpus) -> list[int]:
        if self.unknown is None:
            place = corpus.where(corpus.columns["word"].index(word))
            raise InputError(
                f"{place}: word {word!r} has no piece, and the tokenizer of {self.model} no unknown token; take it out"
            )
        return [self.unknown]

    # -- pieces -> vectors -----------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Tensor:
        """Return the vectors (B, T, D) of the words, 0 in the padding."""
        (pieces,) = batch.inputs
        offsets = pieces.offsets.cpu().numpy().astype(np.int64)
        if len(offsets) == 1:
            B, T = batch.sentences.shape
            return torch.zeros(B, T, self.width, device=pieces.ids.device)
        windows = PieceWindows.over(offsets, batch.lengths.cpu().numpy(), self.max_pieces, self.shared)
        hidden = self._run(pieces.ids, windows.layout(offsets, len(self.opening), len(self.closing)))
        window, before = windows.seats(offsets)
        first = window * hidden.shape[1] + len(self.opening) + before
        counts = np.ones_like(first) if self.pool == "first" else np.diff(offsets)
        return padded_vectors(_means(hidden.flatten(0, 1), first, counts), batch)

    def _run(self, ids: Tensor, layout: np.ndarray) -> Tensor:
        """ids (M,) of all pieces, layout (W, P) of them and the special tokens -> (W, P, D)."""
        padding = max(getattr(self.network.config, "pad_token_id", None) or 0, 0)
        tokens = torch.cat([ids, ids.new_tensor([*self.opening, *self.closing, padding])]).long()
        index = torch.from_numpy(layout).to(ids.device)
        windows, real = tokens[index].split(WINDOWS), (index < len(tokens) - 1).long().split(WINDOWS)
        calls = zip(windows, real, strict=True)
        return torch.cat([self.network(input_ids=a, attention_mask=b).last_hidden_state for a, b in calls])


def _means(vectors: Tensor, first: np.ndarray, counts: np.ndarray) -> Tensor:
    """vectors (M, D) -> (n, D), of i the mean of vectors[first[i] : first[i] + counts[i]]; first, counts (n,) int64."""
    _, places = spread(torch.from_numpy(counts), torch.from_numpy(first))
    bags = Ragged.of_counts(places, torch.from_numpy(counts))
    ids, offsets = bags.ids.to(vectors.device), bags.offsets.to(vectors.device)
    return nn.functional.embedding_bag(ids, vectors, offsets, mode="mean", include_last_offset=True)


def _frame(tokenizer: "Tokenizer", words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Special tokens that the tokenizer puts before and after words, as it does with these."""
    found = tokenizer.encode(words, is_pretokenized=True)
    own = [place for place, word in enumerate(found.word_ids) if word is not None]
    if not own:
        raise InputError(f"Transformer: the tokenizer has no piece for any of the words {' '.join(words[:5])} ...")
    return found.ids[: own[0]], found.ids[own[-1] + 1 :]


def _check_characters(corpus: Corpus, words: Iterable[str]) -> None:
    """Raise InputError for words of a corpus with halves of surrogate pairs, which no tokenizer takes."""
    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            place = corpus.where(list(corpus.columns["word"]).index(word))
            what = f"word {word!a} has half of a surrogate pair, which is not a character"
            raise InputError(f"{place}: {what}; correct the text, or decode it with errors='replace'")


def _of_bytes(tokenizer: str) -> bool:
    """Whether a tokenizer, given as its JSON, cuts words into bytes, as GPT-2 and RoBERTa do."""
    step = json.loads(tokenizer)["pre_tokenizer"] or {}
    return any(one["type"] == "ByteLevel" for one in step.get("pretokenizers", [step]) if one)
