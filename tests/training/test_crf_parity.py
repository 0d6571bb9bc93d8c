"""The conditional random field against two peers: scipy's optimizer on the objective by loops, and CRFsuite."""

import random

import numpy as np
import pycrfsuite
import pytest
import scipy.optimize
import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss, Prior
from structperc.data.labels import LabelSet
from structperc.datamodules.sources import Conll
from structperc.features import FeatureExtractor
from structperc.metrics import compare
from structperc.optim import LBFGS
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from structperc.training.report import label_split
from tests.tiny import EDGE, Loops, Sentences, fit, make_tagger, sentences, weights_of


def test_optimum_of_another_optimizer():
    data, C = Sentences(sentences(11), batch_size=4, shuffle=False), 2.0
    exact = {"tolerance": 0.0, "epsilon": 1e-6}
    tagger = make_tagger(data, CRFLoss(), lambda p: LBFGS(p, **exact), edge=EDGE, k=1, prior=Prior(C))
    optimizer = fit(tagger, data, 400).optimizers[0]
    loops = Loops(tagger, data.encoded("train"))

    def objective(flat):
        weights = weights_of(tagger)
        parts = torch.from_numpy(flat).split([w.numel() for w in weights])
        weights = [part.view_as(w).clone().requires_grad_() for part, w in zip(parts, weights, strict=True)]
        value = loops(weights) + sum(w.square().sum() for w in weights) / (2 * C)
        gradients = torch.autograd.grad(value, weights)
        return float(value), torch.cat([g.flatten() for g in gradients]).numpy()

    start = np.zeros(sum(p.numel() for p in tagger.parameters()))
    options = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-8}
    peer = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    assert optimizer.stop_reason is not None
    with optimizer.evaluation_weights():
        ours = torch.cat([p.detach().flatten() for p in tagger.parameters()]).double()
    assert objective(ours.numpy())[0] == pytest.approx(peer.fun, rel=1e-6)
    torch.testing.assert_close(ours, torch.from_numpy(peer.x), rtol=0, atol=5e-3)


class Peer:
    """A CRFsuite model with weights for all pairs, of the features and labels of a tagger."""

    def __init__(self, tagger, rows, C, folder, iterations=1000, **options):
        self.names = tagger.features.index.names("node")
        trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
        trainer.set_params(
            {
                "c1": 0.0,
                "c2": 1 / (2 * C),
                "feature.possible_states": True,
                "feature.possible_transitions": True,
                "max_iterations": iterations,
                **options,
            }
        )
        for strings, gold in zip(self.strings(rows), gold_of(rows), strict=True):
            trainer.append(strings, gold)
        trainer.train(str(folder / "model"))
        self.objective = trainer.logparser.last_iteration["loss"]
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(str(folder / "model"))

    def strings(self, rows):
        """Names of the features of each token, sentence by sentence."""
        nodes = rows.arrays.nodes
        names = [[self.names[i] for i in ids.tolist()] for ids in nodes.ids.split(nodes.counts.tolist())]
        return rows.corpus.sentences_of(names)

    def weights(self, labels):
        """[node (F, L), transition (L, L)] in float64; what the model leaves out is 0."""
        info, number = self.tagger.info(), {name: i for i, name in enumerate(labels.names)}
        rank = {name: i for i, name in enumerate(self.names)}
        node, transition = np.zeros((len(rank), len(number))), np.zeros((len(number), len(number)))
        for (name, label), weight in info.state_features.items():
            node[rank[name], number[label]] = weight
        for (before, label), weight in info.transitions.items():
            transition[number[before], number[label]] = weight
        return [torch.from_numpy(node), torch.from_numpy(transition)]

    def tag(self, rows):
        return [self.tagger.tag(strings) for strings in self.strings(rows)]


def gold_of(rows):
    return rows.corpus.sentences_of(rows.corpus.columns["label"])


def test_optimum_is_crfsuites(tmp_path):
    """Labels of no scheme: CRFsuite knows none, so that all pairs are legal on both sides."""
    C, draw = 2.0, random.Random(3)
    noisy = [[(w, draw.choice("XYZ") if draw.random() < 0.2 else y[-1]) for w, y in s] for s in sentences(60)]
    data = Sentences(noisy, scheme="none", batch_size=16, shuffle=False)
    exact = {"tolerance": 1e-8, "epsilon": 1e-6}
    tagger = make_tagger(data, CRFLoss(), lambda p: LBFGS(p, **exact), k=1, prior=Prior(C))
    assert len(tagger.labels) > 3
    assert tagger.constraints.transition.all()
    optimizer = fit(tagger, data, 400).optimizers[0]
    rows = data.encoded("train")
    peer = Peer(tagger, rows, C, tmp_path, epsilon=1e-7, delta=1e-9)
    loops = Loops(tagger, rows)

    def objective(weights):
        return float(loops(weights)) + sum(float(w.square().sum()) for w in weights) / (2 * C)

    with torch.no_grad(), optimizer.evaluation_weights():
        ours, theirs = weights_of(tagger), peer.weights(tagger.labels)
        predicted = label_split(tagger, data, "train").labels
    assert objective(theirs) == pytest.approx(peer.objective, rel=1e-5)  # they mean the same by it
    assert objective(ours) == pytest.approx(objective(theirs), rel=1e-5)
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own.detach(), other, rtol=0, atol=2e-2)
    assert predicted == [label for sentence in peer.tag(rows) for label in sentence]
    assert 0.5 < np.mean([a == b for a, b in zip(predicted, rows.corpus.columns["label"], strict=True)]) < 1


@pytest.mark.long
def test_named_entities_are_found_as_by_crfsuite(corpora, tmp_path):
    """A thousand sentences of CoNLL-2003: the same objective, nearly the same labels, F1 within 0.2."""
    C, size = 1.0, 1000
    for name, file, end in (("train.txt", "eng.train", size), ("dev.txt", "eng.testa", None)):
        text = (corpora / "conll2003" / file).read_text(encoding="utf-8").split("\n\n")
        (tmp_path / name).write_text("\n\n".join(text[:end]) + "\n", encoding="utf-8")
    files, columns = {"train": "train.txt", "dev": "dev.txt"}, ["word", "pos", "chunk", "label"]
    data = Conll(str(tmp_path), files, columns, scheme="none", batch_size=100, shuffle=False)
    features = FeatureExtractor(["kazama2007"], progress=False)
    features.fit(data.corpus("train"))
    tagger = Tagger(features, SparseLinear(sparse_grad=False), CRFLoss(), KBest(1), LBFGS, prior=Prior(C))
    tagger.allocate(LabelSet.from_corpus(data.corpus("train").columns["label"], "none"))
    optimizer = fit(tagger, data, 200, limit_val_batches=0).optimizers[0]
    peer = Peer(tagger, data.encoded("train"), C, tmp_path)
    assert optimizer.stop_reason.startswith("converged")
    assert optimizer.lowest == pytest.approx(peer.objective, rel=1e-4)
    with torch.no_grad(), optimizer.evaluation_weights():
        predicted = label_split(tagger, data, "dev").labels
    dev = data.encoded("dev")
    ours, theirs, gold = dev.corpus.sentences_of(predicted), peer.tag(dev), gold_of(dev)
    a, b = compare(gold, ours, theirs, "IOB1").segments
    assert a.f1 == pytest.approx(b.f1, abs=0.002)
    assert np.mean([x == y for x, y in zip(predicted, (y for s in theirs for y in s), strict=True)]) > 0.999
