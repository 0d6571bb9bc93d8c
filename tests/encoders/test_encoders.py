"""Encoders against one sentence at a time; what is common to all of them."""

from itertools import accumulate, pairwise

import pytest
import torch
from torch import nn

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import EncodedCorpus
from structperc.encoders import BiLSTM, CharCNN, FeatureEmbedding, FrozenVectors, Transformer, Window, WordEmbedding
from structperc.encoders.base import variational_dropout
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from tests.encoders.texts import WORDS, assert_alike, batch, corpus

INPUTS = [lambda: WordEmbedding(5, cutoff=1), lambda: CharCNN(width=4, characters=3)]
ENCODERS = {
    "bilstm": lambda: BiLSTM([make() for make in INPUTS], hidden=6, layers=2, dropout=0.3),
    "bilstm of sentences": lambda: BiLSTM([make() for make in INPUTS], hidden=3, within="sentence"),
    "window": lambda: Window([make() for make in INPUTS], window_size=1),
}


def learned(module):
    torch.manual_seed(3)
    module.build_vocabulary(corpus())
    return module.eval()


@pytest.fixture(params=ENCODERS)
def encoder(request):
    return learned(ENCODERS[request.param]())


def test_independent_sentences(encoder):
    lengths = assert_alike(encoder)
    assert len(set(lengths)) == 4
    assert encoder(batch(encoder)).shape == (4, 5, encoder.width)


def test_sentences_of_documents_are_independent():
    encoder = learned(ENCODERS["bilstm of sentences"]())
    alone = encoder(batch(encoder))
    rows = [{"word": words, "label": ["O"] * len(words)} for words in WORDS]
    documents = Corpus.from_sentences(rows, documents=[0, 1, 1, 1], unit="document")
    features = FeatureExtractor(progress=False)
    features.fit(documents)
    found = encoder(EncodedCorpus(documents, features, LabelSet(("O",)), encoder.encode_inputs(documents))[[0, 1]])
    ends = list(accumulate(map(len, WORDS[1:]), initial=0))
    for sentence, (a, b) in enumerate(pairwise(ends), 1):
        torch.testing.assert_close(found[1, a:b], alone[sentence, : b - a])
    torch.testing.assert_close(found[0, :5], alone[0])
    assert not found[0, 5:].any()


def test_batches_without_tokens(encoder):
    found = encoder(batch(encoder, [["Anna", "met"], [], ["Bo"]]))
    assert not found[1].any()
    assert found[0].any()
    assert encoder(batch(encoder, [["Anna"], []], rows=[1])).shape == (1, 0, encoder.width)


def test_gradients_reach_every_weight(encoder):
    encoder(batch(encoder)).square().sum().backward()
    for name, p in encoder.named_parameters():
        assert p.grad is not None, name
        assert p.grad.any(), name


def torch_lstm(encoder):
    """One bidirectional LSTM of torch with the encoder's weights."""
    whole = nn.LSTM(encoder.input_width, encoder.hidden, encoder.layers, batch_first=True, bidirectional=True)
    for lstms, end in ((encoder.onward, ""), (encoder.back, "_reverse")):
        for layer, lstm in enumerate(lstms):
            for name, p in lstm.named_parameters():
                getattr(whole, name.replace("_l0", f"_l{layer}{end}")).data.copy_(p)
    return whole


@pytest.mark.parametrize("layers", [1, 3])
def test_bilstm_equals_torch(layers):
    encoder = learned(BiLSTM([make() for make in INPUTS], hidden=3, layers=layers, dropout=0.5))
    whole, found = torch_lstm(encoder), encoder(batch(encoder))
    for b, words in enumerate(WORDS):
        expected, _ = whole(encoder.embed(batch(encoder, rows=[b])))
        torch.testing.assert_close(found[b, : len(words)], expected[0])


def test_window_puts_neighbours_side_by_side():
    encoder = learned(Window([INPUTS[0]()], window_size=2))
    table, known = encoder.inputs[0].table, encoder.inputs[0].known
    found = encoder(batch(encoder))
    for b, words in enumerate(WORDS):
        rows = [table[n] for n in known.numbers(words).tolist()]
        line = [torch.zeros(5)] * 2 + rows + [torch.zeros(5)] * 2
        expected = torch.stack([torch.cat(line[t : t + 5]) for t in range(len(words))])
        assert torch.equal(found[b, : len(words)], expected)


def test_variational_dropout():
    torch.manual_seed(0)
    found = variational_dropout(torch.ones(200, 7, 50), 0.4, True)
    assert torch.equal(found, found[:, :1].expand_as(found))
    kept = found[found > 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / 0.6))
    assert 0.55 < (found > 0).float().mean() < 0.65
    assert torch.equal(variational_dropout(found, 0.4, False), found)


def test_dropout_only_in_training():
    encoder = learned(ENCODERS["bilstm"]())
    given = batch(encoder)
    assert torch.equal(encoder(given), encoder(given))
    encoder.train()
    assert not torch.equal(encoder(given), encoder(given))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BiLSTM([]), "token embedder"),
        (lambda: BiLSTM([CharCNN()], layers=0), "layers "),
        (lambda: BiLSTM([CharCNN()], within="document"), "within "),
        (lambda: Window([CharCNN()], window_size=-1), "window_size "),
        (lambda: FeatureEmbedding(0), "width "),
        (lambda: FeatureEmbedding(2, dropout=1.0), "dropout "),
        (lambda: FeatureEmbedding(2).allocate(0), "model.features"),
        (lambda: WordEmbedding(cutoff=0), "cutoff "),
        (lambda: WordEmbedding(frozen=True), "frozen=True requires path"),
        (lambda: CharCNN(characters=0), "characters "),
        (lambda: FrozenVectors(Transformer("none"), width=0), "width "),
        (lambda: Transformer("none", pool="last"), "pool "),
        (lambda: Transformer("none", overlap=-1), "overlap "),
        (lambda: Transformer("none", layers=0), "layers "),
        (lambda: Transformer("none", within="paragraph"), "within "),
        (lambda: Transformer("none", context_pieces=0), "context_pieces "),
        (lambda: Transformer("none", frozen_layers=-1), "frozen_layers "),
    ],
)
def test_invalid_options(make, message):
    with pytest.raises(InputError, match=message):
        make()
