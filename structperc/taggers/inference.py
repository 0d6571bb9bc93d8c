"""A trained tagger on new text: labels, k best labellings, marginal probabilities."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from structperc.batching.parts import parts
from structperc.batching.sampler import LengthBatches
from structperc.chain import kbest, log_partition, marginals
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Batch
from structperc.taggers.modes import evaluating

if TYPE_CHECKING:
    from structperc.taggers.sequence_tagger import SequenceTagger
    from structperc.taggers.tagger import Tagger

Sentence = Iterable[str] | Mapping[str, Iterable[str]]


class Labelling(NamedTuple):
    """One labelling of a sentence, its score and, from likelihood-trained models, its log-probability."""

    labels: list[str]
    score: float
    log_probability: float | None


class Inference:
    """What a tagger offers on sentences: lists of words, or {column: strings} where it reads more than words.

    With `documents` (an id per sentence) neighbouring sentences of one id are decided together, as a tagger
    trained on documents was; without it each sentence stands alone. All methods take what can be iterated over once,
    and raise InputError for a missing column.
    """

    def tag(  # type: ignore[misc]
        self: "SequenceTagger", sentences: Iterable[Sentence], documents: Iterable[int] | None = None
    ) -> list[list[str]]:
        """Best labels of each sentence."""
        corpus = self.read(sentences, documents)
        return self.label(corpus)

    @torch.no_grad()
    def label(self: "SequenceTagger", corpus: Corpus) -> list[list[str]]:  # type: ignore[misc]
        """Best labels of each sentence of a corpus."""
        parts = ((batch.rows, self.decode(batch)) for batch in self.batches(corpus))
        return corpus.sentences_of(flat_labels(corpus, self.labels, parts))

    def read(  # type: ignore[misc]
        self: "SequenceTagger", sentences: Iterable[Sentence], documents: Iterable[int] | None = None
    ) -> Corpus:
        """Sentences as a corpus. InputError for a string where a list of words is due, and for words that are none."""
        rows = list(map(_columns, sentences))
        if documents is None:
            return Corpus.from_sentences(rows)
        return Corpus.from_sentences(rows, list(documents), "document")

    def batches(self: "SequenceTagger", corpus: Corpus, batch_size: int = 64) -> Iterator[Batch]:  # type: ignore[misc]
        """Mini-batches of a corpus on the tagger's device, longest sequences first; none without any token.

        As long as there are more, the tagger is in evaluation mode.
        """
        if not corpus.tokens:
            return
        rows = self.encode(corpus)
        with evaluating(self):
            for order in LengthBatches(corpus.lengths, batch_size, shuffle=False):
                yield self.transfer_batch_to_device(rows[order], self.device, 0)


class LatticeInference:
    """What a tagger with a lattice offers beside the best labels. InputError for a missing column."""

    def kbest(self: "Tagger", sentences: Iterable[Sentence], k: int) -> list[list[Labelling]]:  # type: ignore[misc]
        """Up to k best labellings of each sentence, best first; fewer where fewer are possible.

        Log-probabilities are exact, not a softmax over the k candidates; None unless trained by likelihood.
        """
        return self.candidates(self.read(sentences), k)

    @torch.no_grad()
    def candidates(self: "Tagger", corpus: Corpus, k: int) -> list[list[Labelling]]:  # type: ignore[misc]
        """As `kbest`, for the sequences of a corpus.

        With non-local features these are the best by total score among the decoder's candidates, or among the k
        best by local score where that is more. No more is searched for than there are labellings, L^T; InputError for
        lists that do not fit into memory.
        """
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        empty = Labelling([], 0.0, 0.0 if self.probabilistic else None)
        found = [[empty] for _ in range(len(corpus))]
        n = max(k, self.decoder.k) if self.nonlocal_features else k
        for batch in (part for whole in self.batches(corpus) for part in parts(whole, self._possible(whole, n))):
            lattice = self(batch)
            best = self.rescored(batch, kbest(lattice, self._possible(batch, n)))
            log_z = log_partition(lattice) if self.probabilistic else None
            for b, row in enumerate(batch.rows.tolist()):
                labels = best.labels[b, best.valid[b], : batch.lengths[b]][:k].cpu()
                scores = best.scores[b, best.valid[b]][:k]
                logs = [None] * len(scores) if log_z is None else (scores - log_z[b]).tolist()
                names = [self.labels.decode(path) for path in labels]
                found[row] = [Labelling(*one) for one in zip(names, scores.tolist(), logs, strict=True)]
        return found

    def _possible(self: "Tagger", batch: Batch, k: int) -> int:  # type: ignore[misc]
        """k, or the number of labellings of the longest sequence where that is less."""
        return min(k, len(self.labels) ** batch.sentences.shape[1])

    @torch.no_grad()
    def marginals(self: "Tagger", sentences: Iterable[Sentence]) -> list[Tensor]:  # type: ignore[misc]
        """Exact probability of each label at each token, (T, L) per sentence, columns as in `labels.names`.

        InputError unless the tagger was trained by likelihood: perceptron scores are no log-probabilities.
        """
        if not self.probabilistic:
            name = type(self.criterion).__name__
            why = "with non-local features" if self.criterion.probabilistic else f"trained with {name}"
            raise InputError(f"a tagger {why} has scores, not probabilities; train local features with Likelihood")
        corpus = self.read(sentences)
        found = [torch.zeros(0, len(self.labels)) for _ in range(len(corpus))]
        for batch in self.batches(corpus):
            for row, length, table in zip(batch.rows, batch.lengths, marginals(self(batch)), strict=True):
                found[int(row)] = table[:length]
        return found


def _columns(sentence: Sentence) -> dict[str, list[str]]:
    """{column: strings}, each iterated over once."""
    named = sentence if isinstance(sentence, Mapping) else {"word": sentence}
    for role, values in named.items():
        if isinstance(values, str):
            what = "a sentence" if role == "word" else f"column {role!r} of a sentence"
            raise InputError(f"{what} is a list of words, not the string {values[:30]!r}; split it into words")
    columns = {role: list(values) for role, values in named.items()}
    if wrong := [value for values in columns.values() for value in values if not isinstance(value, str)]:
        raise InputError(f"a word is a string, not {wrong[0]!r}; a sentence is a list of words")
    return columns


def flat_labels(corpus: Corpus, labels: LabelSet, parts: Iterable[tuple[Tensor, ...]]) -> list[str]:
    """Label names of all N tokens, from (rows (B,), labels (B, T), ...) of mini-batches that cover the corpus."""
    return flat_values(corpus, ((rows, best) for rows, best, *_ in parts), labels.decode)


def flat_values(
    corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]], read: Callable[[Tensor], list[str]]
) -> list[str]:
    """Strings of all N tokens: what `read` makes of the values, (rows (B,), values (B, T)), of each sequence."""
    flat = [""] * corpus.tokens
    for rows, values in parts:
        for row, own in zip(rows.tolist(), values.cpu(), strict=True):
            start, end = corpus.starts[row], corpus.starts[row + 1]
            flat[start:end] = read(own[: end - start])
    return flat
