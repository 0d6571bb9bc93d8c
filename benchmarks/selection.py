"""python -m benchmarks.selection: F1 against the number of labelled sentences, for several ways to choose them.

CoNLL-2003: a CRF with the features `entities` is trained on sentences of eng.train and scored on eng.testa. It begins
with 100 random sentences; then the model chooses as many again from the others, and is trained on all, until there are
3,200. The table has means over the seeds.
"""

import argparse
import os
from itertools import pairwise
from pathlib import Path

import numpy as np

from structperc.analysis import select
from structperc.data import Conll, Corpus
from structperc.metrics import segment_f1_score
from structperc.sklearn import SequenceTagger

SIZES = [100, 200, 400, 800, 1600, 3200]
WAYS = [("random", 1.0), ("entropy", 1.0), ("entropy", 0.7), ("margin", 1.0), ("margin", 0.7), ("change", 0.7)]
ITERATIONS = 40  # of L-BFGS


def run(way: tuple[str, float], seed: int, train: Corpus, dev: Corpus) -> list[tuple[int, int, float]]:
    """Return sentences, tokens and F1 on the development file of each round."""
    by, max_similarity = way
    words, gold = sentences(train)
    chosen = np.random.default_rng(seed).permutation(len(train))[: SIZES[0]].tolist()
    found = []
    for size, following in pairwise([*SIZES, None]):
        X, y = [words[i] for i in chosen], [gold[i] for i in chosen]
        tagger = SequenceTagger(C=10.0, max_iterations=ITERATIONS, scheme="IOB2").fit(X, y).tagger_
        f1 = 100 * segment_f1_score(dev.sentences_of(dev.columns["label"]), tagger.label(dev))
        found.append((size, sum(map(len, X)), f1))
        print(f"{by} {max_similarity} seed {seed}: {size} sentences, {found[-1][1]} tokens, F1 {f1:.2f}", flush=True)
        if following is not None:
            rest = np.setdiff1d(np.arange(len(train)), chosen)
            pool = train.subset(np.isin(np.arange(len(train)), rest))
            picked = select(tagger, pool, following - size, by, max_similarity, X, seed=seed)
            chosen += rest[[one.item for one in picked]].tolist()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args()
    folder = str(Path(os.environ["STRUCTPERC_DATA"]) / "conll2003")
    files = {"train": "eng.train", "dev": "eng.testa"}
    data = Conll(folder, files, ["word", "pos", "chunk", "label"], labels="IOB1")
    corpora = [data.corpus(split) for split in files]
    train, dev = (
        Corpus.from_sentences([{"word": words, "label": own} for words, own in zip(*sentences(corpus), strict=True)])
        for corpus in corpora
    )
    runs = [[run(way, seed, train, dev) for way in WAYS] for seed in options.seeds]
    means = np.array(runs, dtype=float).mean(0)
    print("| sentences |", " | ".join(f"{size:,}" for size in SIZES), "|")
    for (by, max_similarity), found in zip(WAYS, means, strict=True):
        name = by if max_similarity == 1 else f"{by}, distinct"
        print(f"| {name} |", " | ".join(f"{f1:.1f}" for f1 in found[:, 2]), "|")
        print(f"| {name}: tokens |", " | ".join(f"{tokens:,.0f}" for tokens in found[:, 1]), "|")


def sentences(corpus: Corpus) -> list[list[list[str]]]:
    """Return the words and the labels of each sentence."""
    return [corpus.sentences_of(corpus.columns[role]) for role in ("word", "label")]


if __name__ == "__main__":
    main()
