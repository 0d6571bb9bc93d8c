"""Decoding of token classifiers: label sequences, probabilities and transitions by enumeration; offsets; long texts."""

import math
from itertools import pairwise

import pytest
import torch
import transformers
from transformers import PreTrainedTokenizerFast

from structperc.data import LabelSet
from structperc.data.tag_schemes import first_violation, spans
from structperc.encoders import Transformer
from structperc.errors import InputError, InvalidScoreError
from structperc.nn import ChainHead, TokenTagger, decode_tokens, estimate_transitions, fit_transitions, tokenize_words
from structperc.nn.token_decoding import Transitions
from structperc.text.tokenizer import conll_tokens
from tests.docs.written import blocks
from tests.encoders.tiny_models import SIZES, SPECIAL, TOKENIZERS, byte_pieces, word_pieces
from tests.oracle import label_sequences

LABELS = ["B-PER", "I-PER", "O", "I-LOC", "B-LOC"]  # O is not the first one
WORDS = ["Anna", "met", "Bo"]  # an ##na, met, b ##o


@pytest.fixture(scope="module")
def bert():
    return PreTrainedTokenizerFast(tokenizer_object=word_pieces(), **SPECIAL)


@pytest.fixture(scope="module")
def roberta():
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=byte_pieces(), **special)


def scored(scores, transitions):
    """Each legal label sequence with its score, for scores (N, L) of words."""
    found = {}
    for path in label_sequences(len(scores), len(LABELS)):
        if first_violation([LABELS[i] for i in path], "IOB2") is None:
            total = transitions.start[path[0]] + transitions.end[path[-1]]
            total += sum(scores[t, i] for t, i in enumerate(path))
            found[path] = float(total + sum(transitions.pairs[pair] for pair in pairwise(path)))
    return found


@pytest.mark.parametrize("pool", ["first", "mean", "max"])
def test_spans_and_probabilities_by_enumeration(pool, bert):
    torch.manual_seed(0)
    logits = 2 * torch.randn(1, 9, 5)  # [CLS], 5 pieces, [SEP], 2 of padding
    transitions = Transitions(torch.randn(5), torch.randn(5, 5), torch.randn(5))
    logs = logits[0].log_softmax(1)
    pieces = [[1, 2], [3], [4, 5]]
    own = {
        "first": [logs[p[0]] for p in pieces],
        "mean": [logs[p].exp().mean(0).log() for p in pieces],
        "max": [logs[max(p, key=lambda i: logs[i].max())] for p in pieces],
    }
    totals = scored(torch.stack(own[pool]), transitions)
    z = sum(map(math.exp, totals.values()))
    named = {path: {tuple(one) for one in spans([LABELS[i] for i in path])} for path in totals}
    best = named[max(totals, key=totals.get)]
    (found,) = decode_tokens(logits, bert, [WORDS], LABELS, transitions=transitions, pool=pool)
    assert {(s.type, s.start, s.end) for s in found} == best
    for one in found:
        p = sum(math.exp(totals[path]) / z for path in totals if (one.type, one.start, one.end) in named[path])
        assert one.confidence == pytest.approx(p, rel=1e-4)


@pytest.mark.parametrize("words", [conll_tokens, None])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_offsets(kind, words, request):
    """Spaces within pieces, a character of several pieces, and characters that are dropped."""
    tokenizer = request.getfixturevalue(kind)
    text = "no  \N{GRINNING FACE} in\u200b Bo,   Rome"
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    logits = torch.zeros(1, len(offsets), 5)
    for place, (start, end) in enumerate(offsets):
        piece = text[start:end].strip()
        name = "B-PER" if "\N{GRINNING FACE}" in piece else "I-LOC" if start >= text.index("Rome") - 1 else "O"
        logits[0, place, LABELS.index("B-LOC" if piece[:1] == "R" else name)] = 9.0
    (found,) = decode_tokens(logits, tokenizer, [text], LABELS, words=words)
    assert [(text[one.start : one.end], one.type) for one in found] == [("\N{GRINNING FACE}", "PER"), ("Rome", "LOC")]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_saved_token_classifier(kind, request, tmp_path):
    """A folder of transformers, with normalised, dropped and white characters; the same from a function of arrays."""
    torch.manual_seed(3)
    name = "Bert" if kind == "bert" else "Roberta"
    options = {"id2label": dict(enumerate(LABELS)), "initializer_range": 1.0, "max_position_embeddings": 40, **SIZES}
    config = getattr(transformers, f"{name}Config")(vocab_size=300, **options)
    getattr(transformers, f"{name}ForTokenClassification")(config).save_pretrained(tmp_path)
    request.getfixturevalue(kind).save_pretrained(tmp_path)
    model = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = ["  Ann\u00e1 met\u200b Bo", "no  in"]
    found, none = decode_tokens(model, tokenizer, texts), Transitions.from_pairs({}, LABELS)
    for text, marks in zip(texts, found, strict=True):
        encoded = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
        offsets = encoded.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            logs = model(**encoded).logits[0].log_softmax(1)
        starts = [a + len(text[a:b]) - len(text[a:b].lstrip()) if a < b else -1 for a, b in offsets]
        words = conll_tokens(text)
        totals = scored(torch.stack([logs[starts.index(start)] for start, _ in words]), none)
        best = spans([LABELS[i] for i in max(totals, key=totals.get)])
        assert [one[:3] for one in marks] == [(words[a][0], words[b - 1][1], kind) for kind, a, b in best]

    def session(input_ids, attention_mask):
        with torch.no_grad():
            return model(input_ids=input_ids, attention_mask=attention_mask).logits.numpy()

    assert decode_tokens(session, tokenizer, texts, LABELS) == found


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_words_have_the_pieces_of_text(kind):
    """In all functions that read lists of words; TokenTagger reads the first word like the others."""
    torch.manual_seed(1)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=TOKENIZERS[kind](), pad_token="[PAD]", unk_token="[UNK]")
    words, table, seen = ["Rome", "met", "Anna", "of", "Bo"], torch.randn(300, 5).log_softmax(1), []
    text = " ".join(words)
    expected = tokenizer(text)["input_ids"]

    def model(input_ids, attention_mask):
        seen.append(input_ids[0].tolist())
        return table[input_ids]

    found, _ = (decode_tokens(model, tokenizer, [one], LABELS) for one in (words, text))
    fitted = fit_transitions(model, tokenizer, [words], [["O"] * 5], LABELS)
    (row,) = tokenize_words(tokenizer, [words])
    assert seen == [row["input_ids"]] * 3 == [expected] * 3
    logits = table[row["input_ids"]]
    (entities,) = ChainHead(LABELS).entities(logits[row["words"]][None])
    assert entities.spans
    for own in (found[0], decode_tokens(logits[None], tokenizer, [words], LABELS)[0]):
        assert [one[:3] for one in own] == [(one.start, one.end, one.type) for one in entities.spans]
        assert [one.confidence for one in own] == pytest.approx([one.probability for one in entities.spans])
    torch.testing.assert_close(fit_transitions([logits], tokenizer, [words], [["O"] * 5], LABELS), fitted)
    encoder = Transformer("none")
    encoder.set_network(transformers.BertModel(transformers.BertConfig(vocab_size=300, **SIZES)), tokenizer, words)
    (encoded,) = TokenTagger(encoder, ChainHead(LABELS), tokenizer).encode([words], [["O"] * 5])
    assert encoded["input_ids"] == tokenizer(f" {text}")["input_ids"]


def test_logits_of_words_that_were_read_without_spaces(roberta):
    rows = roberta([WORDS], is_split_into_words=True)["input_ids"]
    assert len(rows[0]) > len(roberta(" ".join(WORDS))["input_ids"])
    with pytest.raises(InputError, match="text 0"):
        decode_tokens(torch.zeros(1, len(rows[0]), 5), roberta, [WORDS], LABELS)


def test_long_texts_are_read_in_windows(bert, monkeypatch):
    torch.manual_seed(1)
    table, lengths = torch.randn(100, 5), []

    def model(input_ids, attention_mask):
        lengths.append(input_ids.shape[1])
        return table[input_ids]

    texts = ["no anna in bo. " * 9, "", "in"]
    whole = decode_tokens(model, bert, texts, LABELS)
    monkeypatch.setattr(bert, "model_max_length", 12)
    assert decode_tokens(model, bert, texts, LABELS) == whole
    assert lengths[0] > 12
    assert max(lengths[1:]) == 12
    monkeypatch.setattr(bert, "model_max_length", 2)
    with pytest.raises(InputError, match="model_max_length"):
        decode_tokens(model, bert, texts, LABELS)
    assert decode_tokens(model, bert, [""], LABELS) == [[]]


def test_padding_on_the_left_and_labels_of_words(bert, monkeypatch):
    monkeypatch.setattr(bert, "padding_side", "left")
    logits = torch.tensor([[[9.0, 9.0]] * 3 + [[0.0, 0.0], [4.0, 0.0], [0.0, 5.0], [0.0, 0.0]]])  # no, in
    found = decode_tokens(logits, bert, "no in", LabelSet(("DET", "ADP"), "none"))
    assert decode_tokens(logits, bert, ["no in"], LabelSet(("DET", "ADP"), "none")) == [found]
    assert [(one.start, one.end, one.type) for one in found] == [(0, 2, "DET"), (3, 5, "ADP")]
    assert found[0].confidence == pytest.approx(1 / (1 + math.exp(-4)))


def test_pairs_of_names_and_prefixes():
    found = Transitions.from_pairs({("O", "B"): 1.0, ("O", "B-LOC"): 2.0, ("", "O"): 3.0, ("I", ""): 4.0}, LABELS)
    assert found.pairs[2].tolist() == [1, 0, 0, 0, 2]
    assert found.start.tolist() == [0, 0, 3, 0, 0]
    assert found.end.tolist() == [0, 4, 0, 4, 0]


def test_estimates_by_hand():
    names = ["O", "B-X", "I-X"]
    found = estimate_transitions([["O", "B-X", "I-X"], ["B-X"]], names, weight=0.5, pseudo_count=1.0)
    single = [2 / 7, 3 / 7, 2 / 7]  # 1, 2 and 1 of 4 tokens, and a pseudo count each
    assert found.start[1].item() == pytest.approx(0.5 * math.log(2 / 4 / single[1]))  # O or B-X, each once
    assert found.pairs[1, 2].item() == pytest.approx(0.5 * math.log(2 / 6 / single[2]))  # of 4 ways on, after 2 tokens
    assert found.end[1].item() == pytest.approx(0.5 * math.log(2 / 6))
    assert found.pairs[0, 2] == 0  # illegal


def test_fitted_scores_are_at_the_minimum(bert):
    """Where counts in gold minus expected counts equal scores / variance."""
    torch.manual_seed(2)
    sentences, gold = [["no", "in"], ["met", "no", "in"]], [["B-PER", "I-PER"], ["O", "B-LOC", "O"]]
    logits = [torch.randn(4, 5), torch.randn(5, 5)]
    found = fit_transitions(logits, bert, sentences, gold, LABELS, variance=2.0)
    rest = found.pairs.double() / -2.0
    for own, names in zip(logits, gold, strict=True):
        totals = scored(own[1:-1].log_softmax(1), found)
        z = sum(map(math.exp, totals.values()))
        right = tuple(map(LABELS.index, names))
        for path, total in totals.items():
            for pair in pairwise(path):
                rest[pair] += (path == right) - math.exp(total) / z
    torch.testing.assert_close(rest, torch.zeros_like(rest), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("logits", "options", "error", "named"),
    [
        (torch.zeros(1, 6, 5), {}, InputError, "text 0"),
        (torch.zeros(2, 7, 5), {}, InputError, "logits"),
        (torch.full((1, 7, 5), torch.nan), {}, InvalidScoreError, "text 0"),
        (torch.zeros(1, 7, 4), {}, InputError, "labels"),
        (torch.zeros(1, 7, 5), {"labels": None}, InputError, "labels"),
        (torch.zeros(1, 7, 5), {"pool": "last"}, InputError, "pool"),
        (torch.zeros(1, 7, 5), {"transitions": {("O", "E"): 1.0}}, InputError, "transitions"),
    ],
)
def test_wrong_arguments(logits, options, error, named, bert):
    with pytest.raises(error, match=named):
        decode_tokens(logits, bert, [WORDS], **{"labels": LABELS, **options})


def test_code_of_the_page(bert, monkeypatch, capsys):
    """Of how_to/decode_tokens, with random weights in place of pretrained ones."""
    labels = dict(enumerate(["O", "B-MISC", "I-MISC", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]))
    config = transformers.BertConfig(vocab_size=100, id2label=labels, **SIZES)
    network = transformers.BertForTokenClassification(config).eval()
    monkeypatch.setattr(transformers.AutoModelForTokenClassification, "from_pretrained", lambda name: network)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name: bert)
    names = {}
    for code in blocks("how_to/decode_tokens", "python"):
        exec(compile(code, "decode_tokens", "exec"), names)
    assert isinstance(names["fitted"], Transitions)
    assert LabelSet(tuple(names["privacy"]), "IOBES")
