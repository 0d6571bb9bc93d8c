"""Vectors of words against the network and its tokenizer, one sentence at a time."""

import json
import string
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast, T5Config, XLNetConfig

from structperc.data.corpus import Corpus
from structperc.encoders import Transformer
from structperc.encoders import transformer as module
from structperc.encoders.pretrained import positions
from structperc.errors import InputError
from tests.encoders.texts import assert_alike, batch, corpus
from tests.encoders.tiny_models import byte_pieces, save_bert, save_roberta, word_pieces

SENTENCES = [["Anna", "met", "Bo", "in", "Rome", "."], ["no"], ["Ann", "U.N.", "!?"], ["in", "in", "Bo"]]
LONG = [[word for _ in range(9) for word in SENTENCES[0]], ["Bo", "met"], ["Anna"] * 14]


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    return save_roberta(tmp_path_factory.mktemp("models") / "roberta")


def learned(folder, sentences=SENTENCES, **options):
    encoder = Transformer(str(folder), **options)
    encoder.build_vocabulary(corpus(sentences))
    return encoder.eval()


@torch.no_grad()
def naive(network, tokenizer, words, pool):
    """(T, D): the pieces of each word by `word_ids`, one sentence, one word at a time."""
    found = tokenizer(words, is_split_into_words=True, return_tensors="pt", return_token_type_ids=False)
    hidden = network(**found).last_hidden_state[0]
    rows = []
    for number in range(len(words)):
        own = [hidden[place] for place, word in enumerate(found.word_ids()) if word == number]
        rows.append(own[0] if pool == "first" else sum(own) / len(own))
    return torch.stack(rows)


@pytest.mark.parametrize("pool", ["first", "mean"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_vectors_of_pieces(kind, pool, request):
    folder = request.getfixturevalue(kind)
    encoder, network = learned(folder, pool=pool), AutoModel.from_pretrained(folder).eval()
    made = word_pieces() if kind == "bert" else byte_pieces(prefix=True)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made)
    given = batch(encoder, SENTENCES)
    assert (given.inputs[0].offsets.diff() > 1).any()
    found = encoder(given)
    assert found.shape == (4, 6, 16) == (4, 6, encoder.width)
    for b, words in enumerate(SENTENCES):
        torch.testing.assert_close(found[b, : len(words)], naive(network, tokenizer, words, pool), rtol=0, atol=1e-5)
        assert not found[b, len(words) :].any()


def test_pieces(bert):
    """[CLS] and [SEP] are no pieces of words; case is folded; ! and ? are unknown."""
    encoder = learned(bert)
    (found,) = encoder.encode_inputs(corpus([["Anna", "!?", "met", "no2"]]))
    names = [encoder.tokenizer.id_to_token(int(one)) for one in found.ids]
    assert names == ["an", "##na", "[UNK]", "[UNK]", "met", "no", "##2"]
    assert found.offsets.tolist() == [0, 2, 4, 5, 7]
    assert (encoder.opening, encoder.closing) == ([2], [3])


def test_independence_of_the_batch(bert):
    assert_alike(learned(bert, pool="mean"))
    assert_alike(learned(bert, window=5, overlap=1))


def test_sequences_without_words(bert):
    encoder = learned(bert)
    found = encoder(batch(encoder, [["Anna", "met"], [], ["Bo"]]))
    assert not found[1].any()
    assert found[0].any()
    assert encoder(batch(encoder, [["Anna"], []], rows=[1])).shape == (1, 0, 16)
    assert encoder(batch(encoder, SENTENCES, rows=[])).shape == (0, 0, 16)


# -- windows -------------------------------------------------------------------------------------------------


@torch.no_grad()
def naive_windows(encoder, network, words, room, overlap):
    """(T, D): each window alone through the network; of each word the vector that is farthest from a boundary."""
    (pieces,) = encoder.encode_inputs(corpus([words]))
    own = [pieces.ids[a:b].tolist() for a, b in zip(pieces.offsets, pieces.offsets[1:], strict=False)]
    best, first = {}, 0
    while True:
        stop = first
        while stop < len(own) and sum(map(len, own[first : stop + 1])) <= room:
            stop += 1
        if stop == len(own):
            while first and sum(map(len, own[first - 1 :])) <= room:
                first -= 1
        ids = [piece for word in own[first:stop] for piece in word]
        hidden = network(torch.tensor([[2, *ids, 3]])).last_hidden_state[0, 1:]
        for word in range(first, stop):
            before, after = sum(map(len, own[first:word])), sum(map(len, own[word + 1 : stop]))
            if word not in best or min(before, after) > best[word][0]:
                best[word] = min(before, after), hidden[before : before + len(own[word])].mean(0)
        if stop == len(own):
            return torch.stack([best[word][1] for word in range(len(own))])
        first = stop
        while sum(map(len, own[first - 1 : stop])) <= overlap and sum(map(len, own[first - 1 : stop + 1])) <= room:
            first -= 1


@pytest.mark.parametrize(("window", "overlap"), [(12, 0), (12, 4), (20, 13), (9, 6)])
def test_long_sequences_are_cut_into_windows(bert, window, overlap, monkeypatch):
    encoder = learned(bert, pool="mean", window=window, overlap=overlap)
    network = AutoModel.from_pretrained(bert).eval()
    given = batch(encoder, LONG)
    found = encoder(given)
    for b, words in enumerate(LONG):
        expected = naive_windows(encoder, network, words, window - 2, overlap)
        torch.testing.assert_close(found[b, : len(words)], expected, rtol=0, atol=1e-5)
    monkeypatch.setattr(module, "CPU_CALL", 2 * window)
    torch.testing.assert_close(encoder(given), found, rtol=0, atol=1e-5)


def test_calls_of_windows_of_similar_length(bert, monkeypatch):
    """At most 14 pieces in a call, [CLS] and [SEP] included."""
    encoder, shapes = learned(bert), []
    encoder.network.register_forward_pre_hook(
        lambda _, args, named: shapes.append(tuple(named["input_ids"].shape)), with_kwargs=True
    )
    monkeypatch.setattr(module, "CPU_CALL", 14)
    encoder(batch(encoder, [["in"] * n for n in (1, 5, 14, 2, 4)]))
    assert shapes == [(1, 16), (2, 7), (2, 4)]


def test_size_of_windows(bert, roberta):
    assert (learned(bert).max_pieces, learned(bert).shared) == (62, 15)
    encoder = learned(roberta)
    assert encoder.max_pieces == 30  # 34 rows, of which two are for the padding and what is before it
    assert torch.isfinite(encoder(batch(encoder, LONG))).all()


def test_positions_without_a_limit():
    sizes = {"vocab_size": 10, "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 8}
    assert positions(AutoModel.from_config(XLNetConfig(**sizes))) is None


def test_word_longer_than_a_window(bert):
    encoder = learned(bert, pool="mean", window=6)
    words = ["met", "abcdefgh", "Bo"]
    (pieces,) = encoder.encode_inputs(corpus([words]))
    assert np.diff(pieces.offsets).tolist() == [1, 4, 2]
    assert torch.equal(encoder(batch(encoder, [words])), encoder(batch(encoder, [["met", "abcd", "Bo"]])))


# -- words without pieces ------------------------------------------------------------------------------------


def test_unknown_token_for_words_without_pieces(bert):
    encoder = learned(bert)
    expected = encoder(batch(encoder, [["Anna", "?", "met", "?", "?"]]))
    assert torch.equal(encoder(batch(encoder, [["Anna", "\u200b", "met", "", "\x07"]])), expected)


def without_unknown(folder):
    letters = Tokenizer(models.BPE({letter: n for n, letter in enumerate(string.ascii_letters)}, []))
    return save_bert(folder, letters, special={"pad_token": "a"})


def test_words_without_pieces_or_unknown_token(tmp_path):
    encoder = learned(without_unknown(tmp_path), [["met"]])
    assert (encoder.opening, encoder.closing, encoder.max_pieces) == ([], [], 64)
    text = Corpus.from_sentences([{"word": ["met"]}, {"word": ["Bo", "?!"]}], name="some.txt")
    with pytest.raises(InputError, match=r"^some\.txt, sentence 2, token 2: .*'\?!'"):
        encoder.encode_inputs(text)


@pytest.mark.parametrize("word", ["\ud83d", "a\udc80"])
def test_halves_of_surrogate_pairs_are_an_error(bert, word):
    text = Corpus.from_sentences([{"word": ["met"]}, {"word": ["Bo", word]}], name="some.txt")
    for read in (learned(bert, [["met"]]).encode_inputs, Transformer(str(bert)).build_vocabulary):
        with pytest.raises(InputError, match=r"^some\.txt, sentence 2, token 2: word '.*\\ud.*surrogate") as caught:
            read(text)
        assert str(caught.value).isascii()
    learned(bert, [["met"]]).encode_inputs(Corpus.from_sentences([{"word": ["😀", "\u200b"]}]))


def test_tokenizer_without_the_words(tmp_path):
    with pytest.raises(InputError, match="! \\?"):
        learned(without_unknown(tmp_path), [["!", "?"]])


# -- what is loaded, saved and trained -----------------------------------------------------------------------


def test_state_is_plain_json(roberta, tmp_path):
    encoder = learned(roberta, pool="mean")
    kept = json.dumps(encoder.to_state())
    assert str(roberta) not in kept
    again = Transformer(str(tmp_path / "deleted"), pool="mean")
    again.load_state(json.loads(kept))
    again.load_state_dict(encoder.state_dict())
    assert again.to_state() == encoder.to_state()
    assert torch.equal(again.eval()(batch(again, SENTENCES)), encoder(batch(encoder, SENTENCES)))


def test_padding_and_truncation_are_ignored(bert, tmp_path):
    tokenizer = word_pieces()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=8)
    save_bert(tmp_path, tokenizer)
    one, other = learned(bert), learned(tmp_path)
    assert torch.equal(one(batch(one, SENTENCES)), other(batch(other, SENTENCES)))


def test_weights_in_single_precision(bert, tmp_path):
    save_bert(tmp_path)
    AutoModel.from_pretrained(bert).bfloat16().save_pretrained(tmp_path)
    assert {p.dtype for p in learned(tmp_path).parameters()} == {torch.float32}


def test_under_autocast(bert):
    encoder = learned(bert, pool="mean")
    given = batch(encoder, SENTENCES)
    with torch.autocast("cpu", torch.bfloat16):
        found = encoder(given)
    assert not torch.equal(found, encoder(given))
    torch.testing.assert_close(found.float(), encoder(given), rtol=0, atol=0.2)


def test_gradients_of_all_weights(bert):
    encoder = learned(bert, pool="mean")
    encoder(batch(encoder, SENTENCES)).pow(2).sum().backward()
    without = {name.partition(".")[0] for name, p in encoder.network.named_parameters() if p.grad is None}
    assert without == {"pooler"}
    assert not any(p.requires_grad for p in encoder.network.pooler.parameters())


def test_frozen_network(tmp_path):
    save_bert(tmp_path, hidden_dropout_prob=0.5)
    frozen, free = learned(tmp_path, frozen=True).train(), learned(tmp_path).train()
    given = batch(free, SENTENCES)
    assert torch.equal(frozen(given), free.eval()(given))
    assert not torch.equal(free.train()(given), frozen(given))
    assert not frozen(given).requires_grad


def test_dropout_is_on_from_the_start(tmp_path):
    """`from_pretrained` gives networks that are not in training."""
    save_bert(tmp_path, hidden_dropout_prob=0.5)
    encoder = Transformer(str(tmp_path))
    encoder.build_vocabulary(corpus(SENTENCES))
    assert encoder.training
    assert all(part.training for part in encoder.network.modules())


def test_concatenated_layers(bert):
    encoder, one = learned(bert, layers=2), learned(bert)
    given = batch(one, SENTENCES)
    assert encoder.width == 2 * one.width
    assert torch.equal(encoder(given)[:, :, one.width :], one(given))
    below = AutoModel.from_pretrained(bert, num_hidden_layers=1).eval()
    one.network = below
    torch.testing.assert_close(encoder(given)[:, :, : one.width], one(given))


def test_sentences_of_a_document(bert):
    """Within sentences, a document has the vectors of its sentences."""
    encoder, document = learned(bert, within="sentence"), [word for words in SENTENCES for word in words]
    given, ends = batch(encoder, [document, ["no"]]), np.cumsum([len(words) for words in SENTENCES])
    begins = torch.zeros_like(given.first[0]).index_fill(0, torch.tensor([0, *ends[:-1]]), True)
    found = encoder(given._replace(first=torch.stack([begins, given.first[1]])))
    for begin, end, words in zip([0, *ends[:-1]], ends, SENTENCES, strict=True):
        torch.testing.assert_close(found[0, begin:end], encoder(batch(encoder, [words]))[0], rtol=0, atol=1e-5)


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 65}, "window must be <= 64, the positions of .*; got 65"),
        ({"window": 2}, "window "),
        ({"layers": 3}, "layers must be <= 2"),
    ],
)
def test_bad_options(bert, options, message):
    with pytest.raises(InputError, match=f"^Transformer: {message}"):
        learned(bert, **options)


@pytest.mark.parametrize("path", ["./nowhere", "here/bert"])
def test_mistyped_path(path, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(InputError, match=r"not a folder"):
        learned(path)


def test_environment_variables_are_filled_in(bert, monkeypatch):
    monkeypatch.setenv("TINY_MODELS", str(bert.parent))
    assert learned("${TINY_MODELS}/bert").model == "${TINY_MODELS}/bert"


def test_loading_draws_no_bars_into_files(bert, capsys):
    learned(bert)
    assert capsys.readouterr().err == ""


def test_unreachable_hub(monkeypatch):
    def fails(place, **options):
        assert (place, options["revision"], options["local_files_only"]) == ("owner/name", "v2", False)
        raise OSError("no\nanswer")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", fails)
    with pytest.raises(InputError, match=r"owner/name .*\(OSError: no answer\)$"):
        learned("owner/name", revision="v2")


def test_folders_without_an_encoder(tmp_path):
    with pytest.raises(InputError, match=str(tmp_path)):
        learned(tmp_path)
    T5Config().save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has an encoder and a decoder"):
        learned(tmp_path)


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"^Transformer .*pip install structperc\[neural\]$"):
        Transformer("owner/name")


def test_lazy_import():
    program = "import sys, structperc.encoders; sys.exit(bool({'transformers', 'tokenizers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], timeout=300, check=False).returncode == 0


WORDS = ["Xiao-Ping's", "naïve", "\u200b", "U.N.", "talks", "in", "Świnoujście", "broke", "(", "again", ")", "."]


@pytest.fixture(scope="module")
def real(pretrained):
    found = Transformer(str(pretrained))
    found.build_vocabulary(corpus([WORDS]))
    return found.eval()


@torch.no_grad()
def test_vectors_of_a_sentence_and_a_long_text(real, pretrained):
    """Words are aligned by the tokenizer; the word without pieces is unknown; the second text has three windows."""
    tokenizer, network = AutoTokenizer.from_pretrained(pretrained), AutoModel.from_pretrained(pretrained).eval()
    written = [tokenizer.unk_token if word == "\u200b" else word for word in WORDS]
    given = tokenizer(written, is_split_into_words=True, return_tensors="pt")
    hidden, numbers = network(**given).last_hidden_state[0], given.word_ids()
    expected = hidden[[numbers.index(number) for number in range(len(WORDS))]]
    found = real(batch(real, [WORDS, WORDS * 40]))
    torch.testing.assert_close(found[0, : len(WORDS)], expected, rtol=0, atol=1e-4)
    similar = torch.cosine_similarity(found[1].unflatten(0, (40, -1)), expected, dim=2)
    assert similar.mean() > 0.6  # windows begin in the middle of the text
