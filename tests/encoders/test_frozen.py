"""Vectors computed once against those of the encoder; the cache; taggers that are saved and loaded."""

import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss
from structperc.data.labels import LabelSet
from structperc.encoders import FrozenVectors, Transformer, Window, WordEmbedding, frozen
from structperc.scorers import Neural
from structperc.taggers import Tagger
from tests.encoders.texts import WORDS, batch, corpus


def built(bert, layers=2, **options):
    torch.manual_seed(0)
    made = FrozenVectors(Transformer(str(bert), layers=layers), width=5, **options)
    made.build_vocabulary(corpus())
    return made


def bits(module):
    return module.encode_inputs(corpus())[0].ids


def test_vectors_of_the_encoder(bert, monkeypatch):
    monkeypatch.setattr(frozen, "BATCH", 3)
    module = built(bert, dropout=0.0)
    whole = batch(module.encoder)
    hidden = module.encoder(whole)[torch.arange(5) < whole.lengths[:, None]]
    torch.testing.assert_close(bits(module).view(torch.float16).float(), hidden, rtol=1e-3, atol=1e-3)
    projected = module.projection(hidden).relu()
    torch.testing.assert_close(module(*module.encode_inputs(corpus())), projected, atol=1e-2, rtol=0)


def test_only_the_projection_is_trained(bert):
    module = built(bert).train()
    trained = {name for name, p in module.named_parameters() if p.requires_grad}
    assert trained == {"projection.weight", "projection.bias"}
    assert not module.encoder.network.training
    assert torch.equal(bits(module), bits(module))


def test_the_cache_is_read(bert, tmp_path, monkeypatch):
    first = bits(built(bert, cache=str(tmp_path / "made" / "here")))
    (file,) = tmp_path.rglob("*.safetensors")
    again = built(bert, cache=str(tmp_path / "made" / "here"))
    with monkeypatch.context() as patched:
        patched.setattr(FrozenVectors, "_vectors", None)  # not called
        assert torch.equal(bits(again), first)
    file.write_bytes(file.read_bytes()[:100])
    assert torch.equal(bits(again), first)
    assert torch.equal(torch.from_numpy(frozen._read(file, first.shape).view(torch.int16).numpy()), first)


def test_what_the_cache_depends_on(bert, tmp_path):
    module = built(bert, cache=str(tmp_path))
    bits(module)
    module.encode_inputs(corpus([*WORDS[1:], WORDS[0]]))
    bits(built(bert, layers=1, cache=str(tmp_path)))
    with torch.no_grad():
        next(module.encoder.parameters()).add_(1)
    bits(module)
    assert len(list(tmp_path.iterdir())) == 4


def test_saved_taggers_do_not_write(bert, tmp_path):
    made, labels = corpus(), LabelSet(("O", "B-X", "I-X"))
    encoder = Window([FrozenVectors(Transformer(str(bert)), 4, cache=str(tmp_path / "cache")), WordEmbedding(2)], 1)
    tagger = Tagger(None, Neural(encoder), CRFLoss(), KBest(1))
    tagger.features.fit(made)
    tagger.scorer.build_vocabulary(made)
    tagger.allocate(labels)
    tagger.fitted = True
    torch.nn.init.normal_(tagger.scorer.head.weight)
    tagger.eval().save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.tag(WORDS)
    assert not (tmp_path / "cache").exists()
    assert loaded.tag(WORDS) == tagger.tag(WORDS)
