"""Taggers that learn from the label sequences of another one."""

from functools import partial

import pytest
import pytorch_lightning as pl
import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss, DistillationLoss, PerceptronLoss
from structperc.data.labels import LabelSet
from structperc.datamodules import Synthetic
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.optim import LBFGS
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger, Teacher

QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}


def data():
    return Synthetic(train=3, dev=0, test=0, ambiguity=0.0, unseen=0.0, batch_size=7, shuffle=False)


def fitted(criterion, epochs=30, optimizer=LBFGS, **options):
    scorer = SparseLinear(sparse_grad=False)
    tagger = Tagger(
        FeatureExtractor(["w[-2]", "w[-1]", "w[0]", "w[1]", "w[2]"]), scorer, criterion, KBest(1), optimizer, **options
    )
    pl.Trainer(max_epochs=epochs, accelerator="cpu", **QUIET).fit(tagger, datamodule=data())
    return tagger


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("models") / "teacher")
    fitted(CRFLoss(), 60).save(folder)
    return folder


def test_a_teacher_without_errors_and_doubts(teacher):
    """Its best label sequences are the gold labels: the student has the weights of a likelihood without teacher."""
    corpus = data().corpus("train")
    assert Tagger.load(teacher).predict(corpus).labels == list(corpus.columns["label"])
    student, alone = fitted(DistillationLoss(), 5, teacher=Teacher(teacher, k=1)), fitted(CRFLoss(), 5)
    for a, b in zip(student.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_the_student_has_the_probabilities_of_the_teacher(teacher):
    words = [["Shares", "of", "Penus", "Corp.", "fell"]]
    weak = fitted(CRFLoss(), 4)
    weak.save(teacher + "-weak")
    student = fitted(DistillationLoss(), 60, teacher=Teacher(teacher + "-weak", k=200))
    torch.testing.assert_close(student.marginals(words)[0], weak.marginals(words)[0], atol=0.1, rtol=0)
    assert not torch.allclose(fitted(CRFLoss(), 60).marginals(words)[0], weak.marginals(words)[0], atol=0.1, rtol=0)


def test_scores_are_divided_by_the_temperature_of_the_teacher(teacher):
    corpus, tagger, own = data().corpus("train"), Tagger.load(teacher), Teacher(teacher, k=2)
    found = []
    for temperature in (1.0, 2.0):
        tagger.temperature = temperature
        own.read(tagger, corpus, tagger.labels)
        found.append(own.lists[0][1])
    assert found[0].tolist() == pytest.approx((2 * found[1]).tolist())


def test_saved_students_do_not_need_the_teacher(teacher, tmp_path):
    student = fitted(DistillationLoss(), 2, teacher=Teacher(teacher))
    student.save(tmp_path / "student")
    loaded = Tagger.load(tmp_path / "student")
    assert loaded.teacher is None
    assert loaded.probabilistic


def test_teacher_and_criterion_belong_together(teacher):
    for options in ({"criterion": DistillationLoss()}, {"criterion": CRFLoss(), "teacher": Teacher(teacher)}):
        with pytest.raises(InputError, match=r"model\.teacher"):
            fitted(epochs=1, **options)


def test_unsuitable_teachers(teacher, tmp_path):
    corpus, labels = data().corpus("train"), Tagger.load(teacher).labels
    with pytest.raises(InputError, match="k must be"):
        Teacher(teacher, k=0)
    with pytest.raises(InputError, match="BILOU"):
        Teacher(teacher).read(Tagger.load(teacher), corpus, LabelSet(labels.names, "BILOU"))
    fitted(PerceptronLoss(), 1, partial(torch.optim.SGD, lr=1.0)).save(tmp_path / "scores")
    with pytest.raises(InputError, match="PerceptronLoss"):
        fitted(DistillationLoss(), 1, teacher=Teacher(str(tmp_path / "scores")))
