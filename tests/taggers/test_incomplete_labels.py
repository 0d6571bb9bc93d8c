"""Training on incomplete labels by each training method."""

import pytest
from pytorch_lightning import Trainer

from structperc import FeatureExtractor, Tagger
from structperc.chain import KBest
from structperc.criteria import CRFLoss, EntityRatio, LocalAndNonlocal, MarginLoss, MCEFLoss, PerceptronLoss
from structperc.datamodules import Conll
from structperc.errors import InputError
from structperc.guided import Aggressive, ContextFeatures
from structperc.guided.model import EarlyUpdate
from structperc.nonlocal_features import ConjunctionConsistency
from structperc.optim import LBFGS, Perceptron
from structperc.scorers import SparseLinear
from structperc.taggers import GuidedTagger


def fit(folder, text, criterion, optimizer, k=1, nonlocal_features=(), **splits):
    (folder / "t.conll").write_text(text)
    data = Conll(
        str(folder), {"train": "t.conll", **splits}, ["word", "label"], incomplete=True, shuffle=False, batch_size=2
    )
    scorer = SparseLinear(sparse_grad=optimizer is Perceptron)
    features = FeatureExtractor(["w[0]"], cutoff=1)
    tagger = Tagger(features, scorer, criterion, KBest(k), optimizer, nonlocal_features, KBest(k))
    options = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    trainer = Trainer(max_epochs=4, logger=False, accelerator="cpu", **options)
    trainer.fit(tagger, data)
    return tagger


def moved(tagger):
    return any(bool(p.any()) for p in tagger.parameters())


def test_full_batches_and_compiled_loops_do_not_take_sets_as_labels(tmp_path):
    unknown = "Anna ?\nleft ?\n\nAnna O|B-PER\n"
    assert not moved(fit(tmp_path, unknown, CRFLoss(), LBFGS))  # the loss is 0
    assert not moved(fit(tmp_path, unknown, PerceptronLoss(), Perceptron))  # the best path, all O, is allowed
    assert moved(fit(tmp_path, unknown, CRFLoss(EntityRatio(ratio=0.15, margin=0.0)), LBFGS))


@pytest.mark.parametrize(("criterion", "k"), [(PerceptronLoss(), 1), (MarginLoss(C=1.0), 2)])
def test_perceptrons_learn_ambiguous_labels(tmp_path, criterion, k):
    text = "Anna B-PER|B-ORG\nleft O\n\nAnna B-PER\n\nOslo !O\nleft ?\n\nFord B-ORG\n"
    tagger = fit(tmp_path, text, criterion, Perceptron, k)
    first, left = tagger.tag([["Anna", "left"]])[0]
    assert first in ("B-PER", "B-ORG")
    assert left == "O"
    assert tagger.tag([["Oslo"]])[0][0] != "O"


def test_nonlocal_weights_are_learned_from_sets(tmp_path):
    """Neighbours of a conjunction have one type: known at one of them, it is learned at the other."""
    text = "Oslo B-LOC\nand O\nAnna !O\n\nAnna B-PER\nleft O\n\nOslo B-LOC\nand O\nRome B-LOC\n"
    tagger = fit(tmp_path, text, LocalAndNonlocal(1.0), Perceptron, 8, [ConjunctionConsistency()])
    assert all(bool(p.any()) for p in tagger.nonlocal_features.parameters())
    assert tagger.tag([["Oslo", "and", "Anna"]])[0][::2] != ["O", "O"]


def test_unsupported_parts_are_named(tmp_path):
    sentences = LocalAndNonlocal(1.0, local_unit="sentence")  # learns sequence by sequence
    for criterion in (MCEFLoss(), sentences):
        with pytest.raises(InputError, match=rf"t.conll:1.*{type(criterion).__name__}"):
            fit(tmp_path, "Anna B-PER|O\n", criterion, Perceptron, 2)
    with pytest.raises(InputError, match=r"t.conll:1.*dev"):
        fit(tmp_path, "Anna ?\nleft B-PER\n", CRFLoss(), LBFGS, dev="t.conll")


def test_guided_learning_accepts_allowed_labels(tmp_path):
    (tmp_path / "t.conll").write_text("Anna B-PER|B-ORG\nleft O\n\nAnna B-PER\nfell ?\n")
    data = Conll(str(tmp_path), {"train": "t.conll"}, ["word", "label"], incomplete=True)
    options = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    for rule in (Aggressive(), EarlyUpdate()):
        tagger = GuidedTagger(FeatureExtractor(["w[0]"], cutoff=1), ContextFeatures(["t[-1]"]), rule=rule)
        trainer = Trainer(max_epochs=3, logger=False, accelerator="cpu", **options)
        trainer.fit(tagger, data)
        assert tagger.tag([["Anna", "left"]]) == [["B-PER", "O"]]
