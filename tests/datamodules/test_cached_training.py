"""A training that reads its data from a cache leaves bit for bit what another one leaves, built or found there."""

import pytest
import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss, LocalAndNonlocal, PerceptronLoss
from structperc.datamodules.sources import Conll
from structperc.features import FeatureExtractor, OtherMentions
from structperc.nonlocal_features import PhraseConsistency
from structperc.optim import LBFGS, Perceptron
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger
from tests.checkpoints import assert_same, assert_same_training
from tests.tiny import fit

COLUMNS = ["word", "pos", "chunk", "label"]
NODE = [{"of": ["w", "shape"], "at": [-1, 0, 1]}]


def tagger(criterion, optimizer, k=1, edge=(), node=NODE, nonlocal_features=(), **options):
    features = FeatureExtractor(node, list(edge), cutoff=1, progress=False, **options)
    return Tagger(features, SparseLinear(), criterion, KBest(k), optimizer, nonlocal_features)


KINDS = {
    "full batch": lambda: (tagger(CRFLoss(), LBFGS, edge=NODE), {"shuffle": False, "unit": "sentence"}),
    "non-local": lambda: (tagger(LocalAndNonlocal(C=1), Perceptron, 4, nonlocal_features=[PhraseConsistency()]), {}),
    "reads documents of sentences": lambda: (
        tagger(PerceptronLoss(), Perceptron, node=[*NODE, "e[0]"], documents={"e": OtherMentions("w", -1)}),
        {"unit": "sentence"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_scores(folder, tmp_path, kind):
    found = []
    for cache in (None, str(tmp_path / "cache"), str(tmp_path / "cache")):
        torch.manual_seed(1)
        made, options = KINDS[kind]()
        files = {"train": "train.txt", "dev": "dev.txt"}
        data = Conll(str(folder), files, COLUMNS, **{"unit": "document", "batch_size": 2, "cache": cache, **options})
        trainer = fit(made, data, 2)
        found.append(
            (made.state_dict(), {name: float(x) for name, x in trainer.logged_metrics.items()}, made.labels.names)
        )
    assert any(weights.any() for weights in found[0][0].values() if weights.is_floating_point())
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


def test_resumed_run_with_cache(runs, tmp_path):
    cache = f"--data.cache={tmp_path / 'cache'}"
    assert runs("fit", "--trainer.max_epochs=2") == 0
    assert runs("fit", "--trainer.max_epochs=1", cache) == 0
    kept = sorted((tmp_path / "cache").iterdir())
    resumed = f"--ckpt_path={runs.root / '2' / 'checkpoints' / 'last.ckpt'}"
    assert runs("fit", "--trainer.max_epochs=2", cache, resumed) == 0
    assert sorted((tmp_path / "cache").iterdir()) == kept
    assert_same_training(runs.root / "2", runs.root / "1")
    for split in ("dev", "test"):
        one, other = ((runs.root / run / "predictions" / f"{split}.conll").read_text() for run in "12")
        assert one == other
