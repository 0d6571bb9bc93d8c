"""Decoding of token classifiers that are trained already: logits of subwords -> legal spans, with probabilities."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from structperc.data.labels import LabelSet
from structperc.encoders.piece_windows import PieceWindows
from structperc.encoders.pretrained import positions, reads_spaces
from structperc.errors import InputError, InvalidScoreError
from structperc.nn.chain_head import ChainHead
from structperc.nn.inputs import label_set
from structperc.nn.subwords import TokenCollator, with_spaces
from structperc.nn.token_tagger import evaluation_mode
from structperc.text import tokenize
from structperc.text.alignment import TextSpan, TokenizedText
from structperc.text.tokenizer import Offsets, Tokenizer, conll_tokens, one_sentence

Labels = LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str]
Pool = Literal["first", "mean", "max"]
PairScores = Mapping[tuple[str, str], float]
NO_LIMIT = 10**6  # model_max_length of tokenizers without a limit is larger
BOUNDARY = ""  # in place of a label, before the first and after the last one


class Transitions(NamedTuple):
    """Scores of label pairs, and of first and last labels, that `decode_tokens` adds to those of a model."""

    start: Tensor  # (L,)
    pairs: Tensor  # (L, L), of labels (columns) after another (rows)
    end: Tensor  # (L,)

    @classmethod
    def from_pairs(cls, scores: PairScores, labels: Labels, scheme: str = "IOB2") -> "Transitions":
        """Return the scores of given pairs, 0 for all others.

        Args:
            scores: scores by label and next label. Each is the name of a label; or its prefix, for all labels with it;
                or "", before the first and after the last label. Of several entries for a pair, that with more names
                counts.
            labels: names of the labels, as in `decode_tokens`.
            scheme: tag scheme of the names.

        Raises:
            InputError: a name or prefix that no label has.
        """
        names = label_set(labels, scheme).names
        states = {BOUNDARY, *names, *map(_prefix, names)}
        for name in (name for pair in scores for name in pair):
            if name not in states:
                raise InputError(f"transitions: no label is {name!r} or has this prefix, of {', '.join(names)}")

        def score(before: str, after: str) -> float:
            keys = [(a, b) for a in (before, _prefix(before)) for b in (after, _prefix(after))]
            return next((float(scores[key]) for key in keys if key in scores), 0.0)

        pairs = [[score(before, after) for after in names] for before in names]
        start, end = [score(BOUNDARY, name) for name in names], [score(name, BOUNDARY) for name in names]
        return cls(torch.tensor(start), torch.tensor(pairs), torch.tensor(end))


def _prefix(name: str) -> str:
    return name.partition("-")[0]


def decode_tokens(
    model: Any,
    tokenizer: Any,
    texts: str | Iterable[str | Sequence[str]],
    labels: Labels | None = None,
    *,
    scheme: str = "IOB2",
    transitions: Transitions | PairScores | None = None,
    pool: Pool = "first",
    words: Tokenizer | None = conll_tokens,
    batch_size: int = 32,
) -> list[Any]:
    """Return the best legal spans of texts, from a token classifier that is trained already.

    The label sequence over the words of a text is the best one that the tag scheme allows (exact Viterbi). Its score is
    the sum of log p(label | piece) of the words and of the transitions. The probability of a span is exact in the
    model p(labels) = exp(score) / Z over all legal label sequences.

    A list of words has the pieces of these words with a space between them, see `tokenize_words`. A word without a
    piece, which some tokenizers drop, is left out of the sequence. Returns a list of `TextSpan` for each text in order,
    or that of one text. Start and end count characters of a text, so that text[start:end] is of `type`, or words of a
    list. In the scheme "none" each word is a span.

    Args:
        model: a token classifier of transformers, or a function of `input_ids` and `attention_mask` that returns
            logits (B, P, L) or an object with `logits`. Texts that are longer than the model allows, or than
            `model_max_length` of the tokenizer, are read in overlapping windows. Or the logits of the texts, (B, P, L)
            padded on the tokenizer's side, or a list of (P, L), with special tokens.
        tokenizer: the fast tokenizer of the model.
        texts: a text, or a list of texts or of lists of words.
        labels: names of the labels in the order of the logits, a mapping of numbers to names (id2label), or a LabelSet;
            by default the id2label of the model.
        scheme: tag scheme of the names. Labels without B, such as O, I-PER and I-LOC, are IOB1.
        transitions: scores of label pairs, see `estimate_transitions`, `fit_transitions` and `Transitions.from_pairs`;
            by default none.
        pool: scores of a word with several pieces: those of the first piece; the log of the mean of the probabilities;
            or "max", those of the piece with the most probable label.
        words: returns the offsets (start, end) of the words of a text; None: each piece is a word, for models trained
            so.
        batch_size: number of rows of a mini-batch.

    Raises:
        InputError: a tokenizer without offsets, labels that are missing or do not fit, logits of another number of
            texts or pieces, or windows that contain only special tokens.
        InvalidScoreError: a logit of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.nn import decode_tokens
        >>> class Tokenizer:  # in place of AutoTokenizer.from_pretrained(...)
        ...     is_fast, padding_side = True, "right"
        ...     def __call__(self, text, **options):  # [CLS] Anna Lin ##d left [SEP]
        ...         return {"input_ids": [2, 5, 6, 7, 8, 3], "special_tokens_mask": [1, 0, 0, 0, 0, 1],
        ...                 "offset_mapping": [(0, 0), (0, 4), (5, 8), (8, 9), (10, 14), (0, 0)]}
        >>> logits = torch.tensor([[[0.0] * 3, [0, 3, 0], [0, 2, 3], [4, 0, 0], [3, 0, 0], [0, 0, 0]]])
        >>> (found,) = decode_tokens(logits, Tokenizer(), ["Anna Lind left"], ["O", "B-PER", "I-PER"])
        >>> [(span.start, span.end, span.type, round(span.confidence, 2)) for span in found]
        [(0, 9, 'PER', 0.66)]
    """
    head = _head(model, labels, scheme, transitions)
    given = _read(tokenizer, [texts] if isinstance(texts, str) else texts, words)
    scores = _word_scores(model, tokenizer, given, pool, batch_size)
    by_text: list[list[TextSpan]] = []
    for first in range(0, len(given), batch_size):
        rows = [item.text for item in given[first : first + batch_size]]
        logits = _padded(scores[first : first + batch_size], len(head.labels))
        mask = torch.arange(logits.shape[1]) < torch.tensor([len(text.tokens) for text in rows])[:, None]
        spans = _labelled_words if head.labels.scheme == "none" else _spans
        by_text += spans(head, logits, mask, rows)
    return by_text[0] if isinstance(texts, str) else by_text


def estimate_transitions(
    sentences: Iterable[Sequence[str]],
    labels: Labels,
    *,
    scheme: str = "IOB2",
    weight: float = 1.0,
    pseudo_count: float = 0.1,
) -> Transitions:
    """Return scores of label pairs from a labelled corpus, without its words.

    A classifier estimates p(y_t | x). The chain of Bourlard & Morgan 1994 (scaled likelihoods) multiplies
    p(y_t | x) / p(y_t) by p(y_t | y_{t-1}), so the score of a pair is

    weight (log p(y_t | y_{t-1}) - log p(y_t)),

    with pseudo counts for legal pairs. Classifiers that read the context know much of it already, so that a weight
    below 1 may be better; `fit_transitions` fits all scores. Returns the scores, float32; 0 for illegal pairs.

    Args:
        sentences: the labels of each sentence.
        labels: names of the labels of the model, as in `decode_tokens`.
        scheme: tag scheme of the names.
        weight: factor of all scores.
        pseudo_count: is added to each count.

    Raises:
        InputError: no sentence, an unknown label, or a pseudo count that is not positive.
    """
    label_names = label_set(labels, scheme)
    if not pseudo_count > 0:
        raise InputError(f"pseudo_count must be > 0, got {pseudo_count}")
    ids = [label_names.encode(tags, f"sentences: sentence {i}") for i, tags in enumerate(sentences) if tags]
    if not ids:
        raise InputError("sentences: there are no labels; give the labels of each sentence")
    L = len(label_names)
    pairs = np.zeros((L + 1, L + 1))  # the last row and column are the boundary
    for numbers in ids:
        path = [L, *numbers.tolist(), L]
        np.add.at(pairs, (path[:-1], path[1:]), 1)
    legal = np.zeros_like(pairs, dtype=bool)
    legal[:L, :L], legal[L, :L], legal[:L, L] = (
        label_names.allowed.transition,
        label_names.allowed.start,
        label_names.allowed.end,
    )
    single = pairs[:, :L].sum(0) + pseudo_count
    pairs = np.where(legal, pairs + pseudo_count, 0)
    prior = np.log(np.append(single / single.sum(), 1.0))
    with np.errstate(divide="ignore"):
        weights = weight * (np.log(pairs) - np.log(pairs.sum(1, keepdims=True)) - prior)
    table = torch.from_numpy(np.where(legal, weights, 0)).float()
    return Transitions(table[L, :L], table[:L, :L], table[:L, L])


def fit_transitions(
    model: Any,
    tokenizer: Any,
    sentences: Iterable[Sequence[str]],
    gold: Iterable[Sequence[str]],
    labels: Labels | None = None,
    *,
    scheme: str = "IOB2",
    pool: Pool = "first",
    variance: float = 1.0,
    batch_size: int = 32,
) -> Transitions:
    """Return the scores of label pairs that fit development data best, without training the model.

    They minimise - sum log p(gold | x) + |scores|^2 / (2 variance), a convex function, by L-BFGS. Returns the scores,
    float32.

    Args:
        model: the model or the logits of the sentences, as in `decode_tokens`.
        tokenizer: the fast tokenizer of the model.
        sentences: the words of each sentence.
        gold: the label names of each sentence.
        labels: names of the labels in the order of the logits, by default those of the model.
        scheme: tag scheme of the names.
        pool: scores of a word with several pieces, as in `decode_tokens`.
        variance: variance of the Gaussian prior of each score.
        batch_size: number of rows of a mini-batch of the model.

    Raises:
        InputError: labels that are unknown, illegal or do not fit the words; a word without a piece.
    """
    head = _head(model, labels, scheme, None).double().requires_grad_(True)
    given, names = _read(tokenizer, sentences, None), list(map(list, gold))
    for number, (sentence, labelled) in enumerate(zip(given, names, strict=False)):
        if len(sentence.text.tokens) != len(labelled) or sentence.left_out:
            what = f"has {len(sentence.text.tokens)} words with pieces, but {len(labelled)} labels"
            raise InputError(f"gold: sentence {number} {what}; correct it, or leave the sentence out")
    if len(names) != len(given):
        raise InputError(f"gold: expected labels of {len(given)} sentences, got {len(names)}")
    scores = _word_scores(model, tokenizer, given, pool, batch_size)
    logits = _padded(scores, len(head.labels)).double()
    numbers = [torch.from_numpy(head.labels.encode(tags, f"gold: sentence {i}")) for i, tags in enumerate(names)]
    target = pad_sequence([logits.new_zeros(0, dtype=torch.int64), *numbers], True, -100)[1:]
    parameters = [head.start_transitions, head.transitions, head.end_transitions]
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=200, tolerance_grad=1e-6, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def objective() -> Tensor:
        optimizer.zero_grad()
        prior = sum(parameter.square().sum() for parameter in parameters) / (2 * variance)
        loss = (head(logits, target, reduction="sum") + prior) / max(1, len(given))
        loss.backward()
        return loss

    optimizer.step(objective)
    return Transitions(*(parameter.detach().float() for parameter in parameters))


def _head(model: Any, labels: Labels | None, scheme: str, transitions: Transitions | PairScores | None) -> ChainHead:
    """Return a head with these labels and transitions."""
    if labels is None:
        labels = getattr(getattr(model, "config", None), "id2label", None)
        if labels is None:
            raise InputError("labels: the model has no id2label; give the names in the order of the logits")
    head = ChainHead(labels, transitions=False, scheme=scheme)
    if transitions is not None:
        if not isinstance(transitions, Transitions):
            transitions = Transitions.from_pairs(transitions, head.labels)
        parameters = (head.start_transitions, head.transitions, head.end_transitions)
        for name, parameter, value in zip(Transitions._fields, parameters, transitions, strict=True):
            if value.shape != parameter.shape:
                shapes = f"expected shape {tuple(parameter.shape)}, got {tuple(value.shape)}"
                raise InputError(f"transitions.{name}: {shapes}; give scores of the {len(head.labels)} labels")
            parameter.data = value.detach().float().cpu()
    return head


# -- words and their pieces -----------------------------------------------------------------------------------


class _Input(NamedTuple):
    """An input with the words that have pieces."""

    text: TokenizedText  # its tokens are offsets of characters, or numbers of words
    pieces: list[list[int]]  # positions of the pieces of each word
    ids: list[int]  # of all pieces, with special tokens
    special: list[int]  # 1 at special tokens
    left_out: int  # number of words without pieces
    exact: bool  # more logits than pieces are not padding: other code may read words without the spaces


def _read(tokenizer: Any, texts: Iterable[str | Sequence[str]], words: Tokenizer | None) -> list[_Input]:
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(f"tokenizer: {type(tokenizer).__name__} has no offsets; use a fast tokenizer")
    if isinstance(texts, str):
        raise InputError(f"sentences: got one text; give a list of words for each sentence, not {texts[:20]!r}")
    spaces = reads_spaces(tokenizer)
    return [
        _read_text(tokenizer, text, words) if isinstance(text, str) else _read_words(tokenizer, list(text), spaces)
        for text in texts
    ]


def _encode(tokenizer: Any, given: str | list[str], **options: Any) -> Any:
    return tokenizer(given, truncation=False, return_special_tokens_mask=True, verbose=False, **options)


def _read_text(tokenizer: Any, text: str, words: Tokenizer | None) -> _Input:
    encoded = _encode(tokenizer, text, return_offsets_mapping=True)
    trimmed = [_without_space(text, *map(int, pair)) for pair in encoded["offset_mapping"]]
    places = [place for place, (start, end) in enumerate(trimmed) if start < end]
    offsets = [trimmed[place] for place in places]
    read = tokenize(text, words or (lambda _: _disjoint(offsets)), one_sentence)
    starts, ends = [start for start, _ in offsets], [end for _, end in offsets]
    pieces = []
    for start, end in read.tokens:
        touching = range(bisect_right(ends, start), bisect_left(starts, end))
        inside = [i for i in touching if starts[i] >= start]  # a piece of two words belongs to the first one
        pieces.append([places[i] for i in inside or touching])
    return _input(read, pieces, encoded)


def _read_words(tokenizer: Any, words: list[str], spaces: bool) -> _Input:
    written = with_spaces(words) if spaces else words
    encoded = _encode(tokenizer, written, is_split_into_words=True) if words else _encode(tokenizer, "")
    pieces: list[list[int]] = [[] for _ in words]
    for place, word in enumerate(encoded.word_ids() if words else ()):
        if word is not None:
            pieces[word].append(place)
    boundaries = [0, len(words)] if words else [0]
    text = TokenizedText("", [(t, t + 1) for t in range(len(words))], boundaries)
    return _input(text, pieces, encoded, spaces)


def _input(text: TokenizedText, pieces: list[list[int]], encoded: Any, exact: bool = False) -> _Input:
    kept = [t for t, ids_of_token in enumerate(pieces) if ids_of_token]
    tokens = [text.tokens[t] for t in kept]
    read = text._replace(tokens=tokens, sentences=[0, len(kept)] if kept else [0])
    ids = list(encoded["input_ids"])
    special = encoded.get("special_tokens_mask") or [0] * len(ids)
    return _Input(read, [pieces[t] for t in kept], ids, list(special), len(pieces) - len(kept), exact)


def _without_space(text: str, start: int, end: int) -> Offsets:
    """Trim white space at both ends: byte-level tokenizers and SentencePiece include it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _disjoint(offsets: Iterable[Offsets]) -> Iterator[Offsets]:
    """Yield offsets without characters of those before: pieces of bytes share characters."""
    last = 0
    for start, end in offsets:
        if end > last:
            yield max(start, last), end
            last = end


# -- scores ---------------------------------------------------------------------------------------------------


def _word_scores(model: Any, tokenizer: Any, given: Sequence[_Input], pool: Pool, batch_size: int) -> list[Tensor]:
    """Return the scores (N, L) of the words of each input."""
    if pool not in get_args(Pool):
        raise InputError(f"pool must be one of {', '.join(get_args(Pool))}, not {pool!r}")
    if callable(model):
        tables = _run(model, tokenizer, given, batch_size)
    else:
        tables = _given_logits(model, given, getattr(tokenizer, "padding_side", "right"))
    scores = []
    for number, (text, table) in enumerate(zip(given, tables, strict=True)):
        logs = table.float().log_softmax(1)
        words = [_pooled(logs[places], pool) for places in text.pieces]
        scores.append(torch.stack(words) if words else logs[:0])
        if bool(scores[-1].isnan().any()):
            word = int(scores[-1].isnan().any(1).nonzero()[0])
            raise InvalidScoreError(f"logits: text {number}, word {word}: +inf, NaN or only -inf; check the model")
    return scores


def _pooled(logs: Tensor, pool: Pool) -> Tensor:
    """Return the scores (L,) of a word of n pieces with log-probabilities (n, L)."""
    if pool == "mean":
        return logs.logsumexp(0) - float(np.log(len(logs)))
    return logs[0] if pool == "first" else logs[logs.amax(1).argmax()]


def _given_logits(logits: Any, given: Sequence[_Input], side: str) -> Iterator[Tensor]:
    if len(logits) != len(given):
        raise InputError(f"logits: expected those of {len(given)} texts, got {len(logits)}")
    for number, (text, table) in enumerate(zip(given, map(torch.as_tensor, logits), strict=True)):
        n = len(text.ids)
        if table.dim() != 2 or len(table) < n or (text.exact and len(table) > n):
            reason = f"text {number} has {n} pieces with special tokens, but logits of shape {tuple(table.shape)}"
            advice = "do not pad, and split words by tokenize_words" if text.exact else "do not truncate texts"
            raise InputError(f"logits: {reason}; {advice}, and keep special tokens")
        yield (table[-n:] if side == "left" else table[:n]).detach().cpu()


def _run(model: Callable[..., Any], tokenizer: Any, given: Sequence[_Input], batch_size: int) -> Iterator[Tensor]:
    """Yield the logits (P, L) of each input, of windows where it is too long for the model."""
    ends = [_special_ends(text.special) for text in given]
    content = [text.ids[a : len(text.ids) - b] for text, (a, b) in zip(given, ends, strict=True)]
    longest = _limit(model, tokenizer)
    limit = longest - max((a + b for a, b in ends), default=0)
    if limit < 1 and any(content):
        raise InputError(f"model_max_length: a window of {longest} pieces has only special tokens; use a larger one")
    sizes = np.array([len(ids) for ids in content], np.int64)
    offsets = np.arange(sizes.sum() + 1)
    windows = PieceWindows.over(offsets, sizes, limit, limit // 4)
    window, before = windows.seats(offsets)
    flat, owner = [i for ids in content for i in ids], np.repeat(np.arange(len(given)), sizes)
    rows = []
    for first, stop in zip(windows.first.tolist(), windows.stop.tolist(), strict=True):
        text_ids, (a, b) = given[owner[first]].ids, ends[owner[first]]
        rows.append([*text_ids[:a], *flat[first:stop], *text_ids[len(text_ids) - b :]])
    outputs = _forward(model, rows, tokenizer.pad_token_id or 0, batch_size)
    skipped = [ends[owner[first]][0] for first in windows.first]
    logits = [outputs[w][skipped[w] + place] for w, place in zip(window.tolist(), before.tolist(), strict=True)]
    for (first, stop), (a, b) in zip(pairwise(np.cumsum([0, *sizes]).tolist()), ends, strict=True):
        own_logits = torch.stack(logits[first:stop]) if stop > first else torch.zeros(0, 1)
        yield nn.functional.pad(own_logits, (0, 0, a, b))


def _special_ends(special: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of special tokens before and after a text."""
    inside = [place for place, is_special in enumerate(special) if not is_special]
    return (inside[0], len(special) - 1 - inside[-1]) if inside else (len(special), 0)


def _limit(model: Any, tokenizer: Any) -> int:
    """Return the maximal number of pieces of a row."""
    limits = [getattr(tokenizer, "model_max_length", None) or NO_LIMIT]
    if isinstance(model, nn.Module) and hasattr(model, "config"):
        limits.append(positions(model) or NO_LIMIT)
    return min(NO_LIMIT, *limits)


@torch.no_grad()
def _forward(model: Callable[..., Any], rows: list[list[int]], pad: int, batch_size: int) -> list[Tensor]:
    """Return the logits (P, L) of each row, from mini-batches of rows of similar lengths."""
    tables: list[Tensor] = [torch.zeros(0, 1)] * len(rows)
    order, collate = sorted(range(len(rows)), key=lambda i: -len(rows[i])), TokenCollator(pad)
    network = model if isinstance(model, nn.Module) else None
    first = next(network.parameters(), None) if network is not None else None
    device = torch.device("cpu") if first is None else first.device
    with nullcontext() if network is None else evaluation_mode(network):
        for start in range(0, len(order), batch_size):
            numbers = order[start : start + batch_size]
            batch = collate([{"input_ids": rows[i], "attention_mask": [1] * len(rows[i])} for i in numbers])
            output = model(**{name: value.to(device) for name, value in batch.items()})
            logits = torch.as_tensor(getattr(output, "logits", output)).cpu()
            for i, table in zip(numbers, logits, strict=True):
                tables[i] = table[: len(rows[i])]
    return tables


def _padded(scores: Sequence[Tensor], L: int) -> Tensor:
    """Return scores of words (N, L) as (B, T, L)."""
    for table in scores:
        if len(table) and table.shape[1] != L:
            raise InputError(
                f"labels: {L} names, but logits of {table.shape[1]} labels; name all of them in their order"
            )
    return pad_sequence([t if len(t) else torch.zeros(0, L) for t in scores], batch_first=True)


# -- spans ----------------------------------------------------------------------------------------------------


def _spans(head: ChainHead, logits: Tensor, mask: Tensor, rows: Sequence[TokenizedText]) -> list[list[TextSpan]]:
    pairs = zip(head.entities(logits, mask), rows, strict=True)
    return [
        [TextSpan(text.tokens[s.start][0], text.tokens[s.end - 1][1], s.type, s.probability) for s in sequence.spans]
        for sequence, text in pairs
    ]


def _labelled_words(
    head: ChainHead, logits: Tensor, mask: Tensor, rows: Sequence[TokenizedText]
) -> list[list[TextSpan]]:
    labels, sure, _ = head.confidence(logits, mask)
    return [
        [
            TextSpan(start, end, head.labels.names[label], p)
            for (start, end), label, p in zip(text.tokens, numbers, confidence, strict=False)
        ]
        for text, numbers, confidence in zip(rows, labels.tolist(), sure.tolist(), strict=True)
    ]
