"""Vectors of features against one row at a time, and taggers that read templates through an encoder."""

import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import EncodedCorpus
from structperc.encoders import FeatureEmbedding, Window, WordEmbedding
from structperc.features import FeatureExtractor
from structperc.ragged import Ragged
from structperc.scorers import Neural
from structperc.taggers import Tagger
from tests.encoders.texts import WORDS

LISTS = Ragged.from_counts(torch.tensor([0, 2, 2, 1, 3]), torch.tensor([2, 0, 3]))


def embedding(dropout=0.0):
    torch.manual_seed(0)
    made = FeatureEmbedding(3, dropout)
    made.allocate(4)
    return made


def test_sum_over_the_root_of_the_number():
    made = embedding()
    rows = [[0, 2], [], [2, 1, 3]]
    expected = torch.stack([made.table[row].sum(0) / max(1, len(row)) ** 0.5 for row in rows])
    torch.testing.assert_close(made(LISTS), expected)
    assert torch.autograd.gradcheck(
        lambda table: torch.func.functional_call(made, {"table": table}, (LISTS,)),
        made.table.detach().double().requires_grad_(),
    )


def test_dropout_of_features():
    made = embedding(0.5)
    same = Ragged.from_counts(torch.zeros(4000, dtype=torch.int64), torch.ones(4000, dtype=torch.int64))
    left_out = (made.train()(same) == 0).all(1).float().mean().item()
    assert 0.45 < left_out < 0.55
    torch.testing.assert_close(made(same).mean(0), made.table[0], rtol=0, atol=0.05)
    assert torch.equal(made.eval()(same), made.table[0].expand(4000, 3))


def tagger():
    """A tagger that reads two templates through an encoder, beside words, and its corpus."""
    sentences = [{"word": words, "label": ["B-X"] + ["O"] * (len(words) - 1)} for words in WORDS]
    corpus, labels = Corpus.from_sentences(sentences), LabelSet(("O", "B-X", "I-X"))
    torch.manual_seed(0)
    encoder = Window([FeatureEmbedding(3), WordEmbedding(2), FeatureEmbedding(2)], window_size=0)
    made = Tagger(FeatureExtractor(["w[0]", "ic[0]"], progress=False), Neural(encoder), CRFLoss(), KBest(k=1))
    made.features.fit(corpus)
    made.scorer.build_vocabulary(corpus)
    made.allocate(labels)
    made.fitted = True
    return made.eval(), corpus, labels


def test_order_of_inputs():
    made, corpus, labels = tagger()
    batch = EncodedCorpus(corpus, made.features, labels, made.inputs(corpus))[[0, 1, 2, 3]]
    first, words, last = made.scorer.encoder.embedders
    expected = torch.cat([first(batch.nodes), words(batch.inputs[0]), last(batch.nodes)], 1)
    real = torch.arange(5) < batch.lengths[:, None]
    assert torch.equal(made.scorer.encoder(batch)[real], expected)


def test_a_saved_tagger_has_the_same_vectors(tmp_path):
    made, _, _ = tagger()
    torch.nn.init.normal_(made.scorer.head.weight)
    made.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    assert again.tag(WORDS) == made.tag(WORDS)
    assert all(torch.equal(a, b) for a, b in zip(made.state_dict().values(), again.state_dict().values(), strict=True))
