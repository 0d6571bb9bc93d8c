"""A transformer with a chain of labels on top, for the Trainer of transformers and for training loops of one's own."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from shutil import copymode
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from structperc.builder import Builder, describe
from structperc.chain import KBest
from structperc.criteria import Criterion
from structperc.data.corpus import Corpus
from structperc.data.json_data import check_fields
from structperc.data.labels import LabelSet, segment_starts
from structperc.data.tag_schemes import first_violation
from structperc.data.text_files import expand_path
from structperc.encoders import Transformer
from structperc.encoders.pretrained import load_pretrained, positions
from structperc.errors import InputError
from structperc.nn.chain_head import ChainHead
from structperc.nn.inputs import IGNORE_INDEX, TokenPositions, build_batch
from structperc.predictor.base import Prediction, Sentence, corpus_from_sentences, text_spans
from structperc.ragged import Ragged
from structperc.structures import Batch, real_tokens
from structperc.text import tokenize
from structperc.text.alignment import TokenizedText
from structperc.text.tokenizer import SentenceSplitter, Tokenizer, conll_tokens, rule_sentences

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast
    from transformers.modeling_outputs import TokenClassifierOutput

CONFIG, WEIGHTS = "token_tagger.json", "model.safetensors"
FORMAT = 1
FIELDS = {
    "format": int,
    "encoder": dict[str, Any],
    "labels": list[str],
    "scheme": str,
    "criterion": dict[str, Any],
    "search": int,
    "transitions": bool,
    "dropout": float,
}
CRITERION = "head.criterion."  # its state serves training only
PROBE = ("Anna", "met", "a", "1", ".")  # words that show which special tokens a tokenizer adds


class TokenTagger(nn.Module):
    """A Hugging Face encoder, linear scores, and a chain of labels: one module with tokenizer and word alignment.

    A word is the vector of its first subword. Its label stands at this position, -100 everywhere else, which is the
    convention of transformers; labels on further subwords would count as further words. `encode` makes such rows;
    rows of other code work as well if they follow it. Padding may be on either side.

    `encode` and `predict` read the same subwords: words are tokenised one by one, byte-level tokenizers (RoBERTa,
    ModernBERT) get a space before each word, words without subwords (zero-width characters) become the unknown token,
    and words that are longer than a window are truncated. `predict` reads longer texts in overlapping windows, with one
    chain of labels over the whole sentence. `from_pretrained` is the usual constructor.

    Args:
        encoder: a `Transformer` with its network, and the defaults of pool, layers and within.
        head: labels, criterion and transitions, without non-local features.
        tokenizer: the tokenizer of the encoder, for collators; it is saved with the tagger.
        dropout: share of the components of vectors that are dropped in training.

    Raises:
        InputError: another encoder, or a head with non-local features.

    Example:
        >>> from structperc.nn import TokenTagger
        >>> labels = ["O", "B-PER", "I-PER"]
        >>> tagger = TokenTagger.from_pretrained("google-bert/bert-base-cased", labels=labels)  # doctest: +SKIP
        >>> rows = tagger.encode([["Anna", "Lind", "left"]], [["B-PER", "I-PER", "O"]])  # doctest: +SKIP
        >>> tagger.predict("Anna Lind left.")  # after training  # doctest: +SKIP
        [TextSpan(start=0, end=9, type='PER', confidence=0.98, best=True, continuous=True, quote=None)]
    """

    accepts_loss_kwargs = False  # for the Trainer: the loss is a mean over rows, not over labels of several batches

    def __init__(
        self, encoder: Transformer, head: ChainHead, tokenizer: "PreTrainedTokenizerFast", dropout: float = 0.1
    ) -> None:
        super().__init__()
        options = (encoder.pool, encoder.layers, encoder.within)
        if encoder.network is None or options != ("first", 1, "sequence"):
            raise InputError(
                "TokenTagger: encoder must be a loaded Transformer with pool first, layers 1, within sequence"
            )
        if head.nonlocal_features:
            raise InputError("TokenTagger: head has non-local features, which need words; use ChainHead in your model")
        self.encoder, self.head, self.tokenizer = encoder, head, tokenizer
        self.dropout, self.scores = nn.Dropout(dropout), nn.Linear(encoder.width, len(head.labels))
        self._longest = positions(encoder.network)

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path,
        labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str] | None = None,
        *,
        scheme: str = "IOB2",
        criterion: Criterion | None = None,
        transitions: bool = True,
        dropout: float = 0.1,
        window: int | None = None,
        overlap: int | None = None,
        frozen: bool = False,
        revision: str | None = None,
    ) -> Self:
        """Return a pretrained encoder with a new head, or the tagger of a folder written by `save_pretrained`.

        It is in evaluation mode, as models of transformers are. No code of a model runs.

        Args:
            model: folder of a saved model and its tokenizer (environment variables are expanded), or an id of the hub;
                or the folder of a saved tagger, which has its own options.
            labels: names of the labels in the order of their numbers, a mapping of numbers to names (id2label), or a
                LabelSet; by default the id2label of a token classifier.
            scheme: tag scheme, if `labels` are names.
            criterion: the loss; by default CRFLoss, or that of a saved tagger.
            transitions: if True, train the scores of label pairs.
            dropout: share of the components of vectors that are dropped in training.
            window: subword tokens of a window with its special tokens; by default the positions of the model.
            overlap: maximal number of subwords that neighbouring windows share; by default a quarter of a window.
            frozen: do not train the encoder.
            revision: branch, tag or commit of the hub.

        Raises:
            InputError: a model that cannot be loaded, labels that are missing, invalid or, for a saved tagger, given.
        """
        name = str(model)
        if (expand_path(name) / CONFIG).is_file():
            if labels is not None:
                raise InputError(f"labels: the tagger in {name} has its own; leave them out, or name another model")
            return cls._load(expand_path(name), criterion)
        if labels is not None:  # before the model is loaded
            head = ChainHead(labels, criterion, transitions=transitions, scheme=scheme)
        encoder = Transformer(name, revision, window=window, overlap=overlap, frozen=frozen)
        network, tokenizer = load_pretrained(name, revision)
        if labels is None:
            head = ChainHead(_named_labels(network, name), criterion, transitions=transitions, scheme=scheme)
        encoder.set_network(network, tokenizer, PROBE)
        return cls(encoder, head, tokenizer, dropout).eval()

    @property
    def labels(self) -> LabelSet:
        """The label names, in the order of their numbers, and their tag scheme."""
        return self.head.labels

    @property
    def config(self) -> "PretrainedConfig":
        """The configuration of the network, from which peft takes the layers to adapt."""
        return self.encoder.network.config

    # -- training --------------------------------------------------------------------------------------------

    def encode(self, sentences: Iterable[Sequence[str]], labels: Iterable[Sequence[str]]) -> list[dict[str, list[int]]]:
        """Return sentences as rows for `forward`, for a Trainer or a DataLoader with a collator.

        A sentence that is longer than a window becomes several rows, cut where no segment is cut. `sentences`: the
        words of each sentence. `labels`: the label names of the words of each sentence. Returns rows with input_ids,
        attention_mask and labels: the number of a word's label at its first subword, -100 elsewhere.

        Raises:
            InputError: different numbers of labels and words, unknown or illegal labels, a segment that is longer than
                a window.
        """
        corpus = corpus_from_sentences(sentences)
        gold = list(map(list, labels))
        if list(map(len, gold)) != corpus.lengths.tolist():
            raise InputError(f"labels: expected the {len(corpus)} sentences' numbers of words; give one label per word")
        (pieces,) = self.encoder.encode_inputs(corpus)
        rows: list[dict[str, list[int]]] = []
        starts = np.cumsum([0, *corpus.lengths])
        for number, (tags, (start, stop)) in enumerate(zip(gold, pairwise(starts.tolist()), strict=True)):
            numbers = self.labels.encode(tags, f"labels: sentence {number}")
            if (wrong := first_violation(tags, self.labels.scheme)) is not None:
                advice = "repair the labels, or use labels of scheme none"
                raise InputError(f"labels: sentence {number}, word {wrong}: {tags[wrong]} is illegal here; {advice}")
            rows += self._rows(pieces.slice(start, stop), torch.from_numpy(numbers), number)
        return rows

    def _rows(self, pieces: Ragged, labels: Tensor, number: int) -> Iterator[dict[str, list[int]]]:
        """Yield the rows of a sentence of n words, given their pieces and labels (n,)."""
        begins = (self.labels.types[labels] < 0) | segment_starts(labels, self.labels)
        may_cut = begins[1:] & self.labels.start[labels[1:]] & self.labels.end[labels[:-1]]
        cuts = [*(may_cut.nonzero().squeeze(1) + 1).tolist(), len(labels)] if len(labels) else []
        first, offsets = 0, pieces.offsets.tolist()
        for cut, following in pairwise([*cuts, None]):
            if following is not None and offsets[following] - offsets[first] <= self.encoder.max_pieces:
                continue
            if offsets[cut] - offsets[first] > self.encoder.max_pieces:
                raise InputError(f"labels: sentence {number} has a segment that is longer than a window; shorten it")
            yield self._row(pieces.slice(first, cut), labels[first:cut])
            first = cut

    def _row(self, pieces: Ragged, labels: Tensor) -> dict[str, list[int]]:
        opening, closing = self.encoder.opening, self.encoder.closing
        gold = torch.full((len(pieces.ids),), IGNORE_INDEX).index_put((pieces.offsets[:-1],), labels)
        ids = [*opening, *pieces.ids.tolist(), *closing]
        around = [IGNORE_INDEX] * len(opening), [IGNORE_INDEX] * len(closing)
        given = {"input_ids": ids, "attention_mask": [1] * len(ids)}
        return {**given, "labels": [*around[0], *gold.tolist(), *around[1]]}

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **others: Any,
    ) -> "TokenClassifierOutput":
        """Return the scores of labels at all positions and, given labels, the loss.

        Returns `loss`, the mean over rows, or None without labels, and `logits` (B, P, L). Their best label sequences
        are those of `decode`; the largest logit of a position may be an illegal label.

        Args:
            input_ids: (B, P) subwords of rows with special tokens and padding.
            attention_mask: (B, P), 0 in the padding, on either side; by default there is none.
            token_type_ids: (B, P), for models that use them.
            labels: (B, P) label numbers at first subwords, -100 elsewhere.
            others: options that the Trainer and peft pass to models of transformers; they have no effect.

        Raises:
            InputError: wrong shapes, more positions than the encoder has, another input, such as `position_ids`; on a
                CPU also unknown or illegal labels.
        """
        from transformers.modeling_outputs import TokenClassifierOutput

        for name, value in others.items():
            if isinstance(value, Tensor) and name != "num_items_in_batch":
                raise InputError(f"{name}: TokenTagger has no such input; make the rows by TokenTagger.encode")
        if self._longest is not None and input_ids.shape[1] > self._longest:
            have = f"input_ids: {input_ids.shape[1]} positions, but the encoder has {self._longest}"
            raise InputError(f"{have}; make the rows by TokenTagger.encode, which cuts long sentences")
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        places = TokenPositions.from_mask(mask != 0)  # padding on the right, so that vectors do not depend on its side
        given = {"input_ids": places.gather(input_ids), "attention_mask": places.mask.long()}
        if token_type_ids is not None:
            given["token_type_ids"] = places.gather(token_type_ids)
        scores = self.scores(self.dropout(self.encoder.network(**given).last_hidden_state))
        logits = torch.zeros_like(scores).scatter(1, places.order[:, :, None].expand_as(scores), scores)
        loss = None if labels is None else self.head(logits, labels)
        return TokenClassifierOutput(loss=loss, logits=logits)

    def gradient_checkpointing_enable(
        self, gradient_checkpointing_kwargs: dict[str, Any] | None = None, **options: Any
    ) -> None:
        """Compute the encoder's activations a second time in the backward pass, which takes time and saves memory.

        The Trainer of transformers calls this for the option of the same name, with the options of its version.
        """
        self.encoder.network.gradient_checkpointing_enable(gradient_checkpointing_kwargs, **options)

    def gradient_checkpointing_disable(self) -> None:
        """Keep the encoder's activations for the backward pass."""
        self.encoder.network.gradient_checkpointing_disable()

    def decode(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the best legal label sequence of each row, as `preprocess_logits_for_metrics` of a Trainer.

        `logits`: (B, P, L) of `forward`. `labels`: (B, P), -100 at positions without a word; other numbers have no
        effect. Returns label numbers (B, P), -100 at positions without a word.

        Raises:
            InputError: no labels.
        """
        if labels is None:
            raise InputError("labels: decode needs -100 at positions without a word; for new text, use predict or tag")
        return self.head.decode(logits, labels != IGNORE_INDEX)

    def names(self, labels: Iterable[Any]) -> list[list[str]]:
        """Return the names of the label numbers of each row, without positions of -100.

        `labels`: (B, P), a tensor or an array, or lists of numbers.
        """
        rows = map(torch.as_tensor, labels)
        return [self.labels.decode(row[row != IGNORE_INDEX]) for row in rows]

    # -- prediction ------------------------------------------------------------------------------------------

    def predict(
        self,
        inputs: str | Iterable[str | Sequence[str]],
        tokenizer: Tokenizer = conll_tokens,
        sentences: SentenceSplitter = rule_sentences,
        batch_size: int = 32,
    ) -> list[Any]:
        """Return the segments of texts, or of sentences as lists of words.

        Returns a list of `TextSpan` for each text or sentence in order, or that of one text. Start and end count
        characters of a text, so that text[start:end] is of `type`, or words of a list. Confidences are probabilities,
        or None if the criterion has none. In the scheme "none" each word is a span.

        Args:
            inputs: a text, or a list of texts, which are split into words and sentences, or of lists of words, each one
                sentence.
            tokenizer: returns the offsets (start, end) of the words of a text, tokenised like the training data.
            sentences: returns the boundaries of sentences among these words.

        Raises:
            InputError: words that are not strings.
        """
        given = [inputs] if isinstance(inputs, str) else inputs
        read = [_read(item, tokenizer, sentences) for item in given]
        prediction = self._predict(
            corpus_from_sentences([sentence for item in read for sentence in item.words]), batch_size
        )
        parts = prediction.split(len(item.text.tokens) for item in read)
        spans = [text_spans(item.text, part, self.labels.scheme) for item, part in zip(read, parts, strict=True)]
        return spans[0] if isinstance(inputs, str) else spans

    def tag(self, sentences: Iterable[Sentence], batch_size: int = 32) -> list[list[str]]:
        """Return the names of the best labels of each sentence.

        `sentences`: lists of words. `batch_size`: number of sentences of a mini-batch.

        Raises:
            InputError: a string in place of a list of words.
        """
        corpus = corpus_from_sentences(sentences)
        return corpus.sentences_of(self._predict(corpus, batch_size).labels)

    @torch.no_grad()
    def _predict(self, corpus: Corpus, batch_size: int) -> Prediction:
        """Return the labels of a corpus with their confidences, from mini-batches of sentences of similar lengths."""
        (pieces,) = self.encoder.encode_inputs(corpus)
        ends = np.cumsum(corpus.lengths)
        sizes = np.diff(pieces.offsets.numpy()[np.concatenate([[0], ends])])
        labels, sure = np.zeros(corpus.tokens, np.int64), np.full(corpus.tokens, np.nan)
        order = np.flatnonzero(sizes)[np.argsort(-sizes[sizes > 0], kind="stable")]
        with evaluation_mode(self):
            for first in range(0, len(order), batch_size):
                rows = order[first : first + batch_size]
                words = np.concatenate([np.arange(ends[row] - corpus.lengths[row], ends[row]) for row in rows])
                best, confidence, real = self._label(self._batch(pieces.select(torch.from_numpy(words)), corpus, rows))
                labels[words], sure[words] = best[real].cpu(), confidence[real].cpu()
        confidences = sure if self.head.probabilistic else None
        return Prediction(self.labels.decode(labels), confidences, confidences)

    def _batch(self, pieces: Ragged, corpus: Corpus, rows: np.ndarray) -> Batch:
        device, lengths = self.scores.weight.device, torch.from_numpy(corpus.lengths[rows])
        real = real_tokens(lengths, int(lengths.max())).to(device)
        inputs = (pieces._replace(ids=pieces.ids.to(device)),)
        return build_batch(TokenPositions.from_mask(real), None, None, None)._replace(inputs=inputs)

    def _label(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return labels (B, T), their confidences or those of their segments (B, T), and a mask of the words (B, T)."""
        logits, real = self.scores(self.encoder(batch)), real_tokens(batch.lengths, batch.sentences.shape[1])
        labels = self.head.decode(logits, real)
        if not self.head.probabilistic:
            return labels, torch.zeros_like(logits[:, :, 0]), real
        if self.labels.scheme == "none":
            return labels, self.head.confidence(logits, real).tokens, real
        return labels, self.head.segment_confidence(logits, labels, real), real

    # -- saved taggers ---------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> None:
        """Save the tagger, to be loaded by `from_pretrained` without the pretrained model.

        `folder`: gets the weights (model.safetensors), labels and options (token_tagger.json), and the files of the
        tokenizer.

        Raises:
            InputError: adapters of peft that are not merged.
        """
        weights = self._weights()
        if any("base_layer" in name.split(".") for name in weights):
            advice = "call merge_and_unload before, or save the model of peft"
            raise InputError(f"save_pretrained: the tagger has adapters, which its folder cannot contain; {advice}")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        config = {
            "format": FORMAT,
            "encoder": describe(self.encoder),
            "labels": list(self.labels.names),
            "scheme": self.labels.scheme,
            "criterion": describe(self.head.criterion),
            "search": self.head.search.k,
            "transitions": self.head.trains_transitions,
            "dropout": self.dropout.p,
        }
        self.tokenizer.save_pretrained(place)
        save_file(weights, place / WEIGHTS)
        (place / CONFIG).write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
        copymode(place / CONFIG, place / WEIGHTS)  # safetensors writes files that only their owner may read

    def _weights(self) -> dict[str, Tensor]:
        state = {name: tensor for name, tensor in self.state_dict().items() if not name.startswith(CRITERION)}
        return {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in state.items()
        }

    @classmethod
    def _load(cls, folder: Path, criterion: Criterion | None) -> Self:
        try:
            config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
            check_fields(config, FIELDS, CONFIG)
            encoder = Builder().part(config["encoder"], Transformer, "encoder")
            labels = LabelSet(tuple(config["labels"]), config["scheme"])
            loss = criterion or Builder().part(config["criterion"], Criterion, "criterion")
            search = KBest(max(config["search"], loss.min_candidates))
            head = ChainHead(labels, loss, search=search, transitions=config["transitions"])
            tagger = cls(encoder, head, _tokenizer(folder), config["dropout"])
            weights = load_file(folder / WEIGHTS)
            missing, unknown = tagger.load_state_dict(weights, strict=False)
            if wrong := [*unknown, *(name for name in missing if not name.startswith(CRITERION))]:
                raise InputError(f"{WEIGHTS}: {wrong[0]} is missing or unexpected; save the tagger again")
        except InputError as error:
            raise InputError(f"{folder}: {error}") from None
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{folder}: not a readable tagger ({reason}); save it again") from None
        return tagger.eval()


def _named_labels(network: Any, name: str) -> dict[int, str]:
    """Return the id2label of a token classifier. Raises InputError for the names that a model without labels has."""
    labels = dict(network.config.id2label)
    if all(re.fullmatch(r"LABEL_\d+", label) for label in labels.values()):
        raise InputError(f"labels: {name} is neither a TokenTagger nor a classifier with labels; give their names")
    return labels


class _Input(NamedTuple):
    """Words of the sentences of an input; its tokens as offsets of characters, or as numbers of words."""

    words: list[list[str]]
    text: TokenizedText


def _read(one: str | Sequence[str], tokenizer: Tokenizer, sentences: SentenceSplitter) -> _Input:
    if isinstance(one, str):
        text = tokenize(one, tokenizer, sentences)
        return _Input(text.word_lists, text)
    words = list(one)
    tokens = [(t, t + 1) for t in range(len(words))]
    return _Input([words], TokenizedText("", tokens, [0, len(words)] if words else [0]))


def _tokenizer(folder: Path) -> "PreTrainedTokenizerFast":
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode, and back."""
    before = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(before)
