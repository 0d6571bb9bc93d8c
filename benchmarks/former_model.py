"""python -m benchmarks.former_model: training on more sentences, from scratch and from the model of fewer of them.

CoNLL-2003: taggers with the features `entities` are trained on the first 100, 200, ... 3,200 sentences of eng.train in
a random order and scored on eng.testa. From the second round on, each is trained twice: from scratch, and from the
model of the round before (`init_from`), which has fewer features and was itself trained from a former model.
"""

import argparse
import os
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.selection import SIZES, sentences
from structperc.chain import KBest
from structperc.criteria import CRFLoss, HingeLoss, Prior
from structperc.data import Conll
from structperc.features import FeatureExtractor
from structperc.metrics import segment_f1_score
from structperc.optim import LBFGS, PassiveAggressive
from structperc.scorers import SparseLinear
from structperc.sklearn import SequenceTagger
from structperc.taggers import Tagger


def crf(features: FeatureExtractor, init_from: str | None) -> Tagger:
    """Return the tagger of `SequenceTagger("crf", C=10)`, with a former model."""
    scorer = SparseLinear(sparse_grad=False)
    return Tagger(features, scorer, CRFLoss(), KBest(1), LBFGS, prior=Prior(10.0), init_from=init_from)


def passive_aggressive(features: FeatureExtractor, init_from: str | None) -> Tagger:
    """Return the tagger of `SequenceTagger("passive_aggressive")`, with a former model."""
    optimizer = partial(PassiveAggressive, C=1.0)
    return Tagger(features, SparseLinear(), HingeLoss(1.0), KBest(1), optimizer, init_from=init_from)


LEARNERS = {"CRF": (crf, [5, 10, 20, 40]), "PA": (passive_aggressive, [1, 2, 5, 10])}  # with numbers of iterations


def run(learner: str, seed: int) -> None:
    """Print F1 and processor seconds of each round, by number of iterations, from scratch and from the former model."""
    make, numbers = LEARNERS[learner]
    folder = str(Path(os.environ["STRUCTPERC_DATA"]) / "conll2003")
    files = {"train": "eng.train", "dev": "eng.testa"}
    data = Conll(folder, files, ["word", "pos", "chunk", "label"], labels="IOB1")
    (words, gold), (dev_words, dev_gold) = (sentences(data.corpus(split)) for split in files)
    order = np.random.default_rng(seed).permutation(len(words)).tolist()
    with TemporaryDirectory() as saved:
        former = None
        for size in SIZES:
            X, y = [words[i] for i in order[:size]], [gold[i] for i in order[:size]]
            for start in (None, former) if former else (None,):
                for iterations in numbers:
                    began = time.process_time()
                    options = {"max_iterations": iterations, "scheme": "IOB2", "random_state": seed}
                    estimator = SequenceTagger(partial(make, init_from=start), **options).fit(X, y)
                    seconds = time.process_time() - began
                    f1 = 100 * segment_f1_score(dev_gold, estimator.predict(dev_words))
                    kind = "former model" if start else "scratch"
                    print(f"| {learner} | {size:,} | {kind} | {iterations} | {f1:.1f} | {seconds:.1f} |", flush=True)
            former = str(Path(saved) / str(size))
            estimator.tagger_.save(former)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("learner", choices=LEARNERS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    run(options.learner, options.seed)
