"""`SequenceTagger` of scikit-learn against CRFsuite: the same feature dicts, from lists of dicts to labels.

The features are those of the tutorial of sklearn-crfsuite, and so are c1 = c2 = 0.1 and 100 iterations of L-BFGS; both
sides have the same algorithms and stopping rules. By default both have weights only for the pairs of feature and label
that they have seen (CRFsuite also of labels), and for all pairs in the rows of all pairs; perceptrons of ours always
have all of them. Times are those of the processor, medians of fits that take turns, after a first one that compiles.
"""

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pycrfsuite

from structperc.data import Conll, Synthetic
from structperc.sklearn import SequenceTagger, flat_accuracy_score

SENTENCES = 800
ALL = {"feature.possible_states": True, "feature.possible_transitions": True}
CRF = {"c1": 0.1, "c2": 0.1, "max_iterations": 100}
PERCEPTRON = {"max_iterations": 10}


class Sentences(NamedTuple):
    """Feature dicts and labels of each sentence."""

    X: list[list[dict[str, Any]]]
    y: list[list[str]]


def run(smoke: bool) -> list[dict]:
    """Return seconds of fit and predict of both sides, and the accuracy of their labels."""
    train, dev, name = _data(smoke)
    size = f"{len(train.X)} sentences of {name}, {sum(map(len, train.X))} tokens"
    rows = []
    for algorithm, options in (("lbfgs", CRF), ("ap", PERCEPTRON)):
        for pairs, more in (("seen pairs", {}), ("all pairs", ALL)):
            ours = partial(_ours, algorithm, {**options, "all_possible_states": bool(more)})
            found = _medians(1 if smoke else 5, train, dev, ours, partial(_peer, algorithm, {**options, **more}))
            kinds = (("fit", "s", "≤ 1"), ("predict", "s", "≤ 1"), ("accuracy", "accuracy", None))
            for (what, unit, target), (mine, theirs) in zip(kinds, found, strict=True):
                label = f"feature dicts, {what}, {algorithm}; {pairs}"
                row = {"what": label, "size": size, "ours": mine, "peer": theirs, "ratio": mine / theirs}
                rows.append({**row, "unit": unit, "target": target})
    return rows


def _medians(n: int, train: Sentences, dev: Sentences, *sides: Callable[..., Any]) -> list[tuple[float, ...]]:
    """Return seconds of fit, seconds of predict, and accuracy, each for all sides."""
    turns = [[side(train, dev) for side in sides] for _ in range(n + 1)][1:]
    of_sides = [[median(values) for values in zip(*times, strict=True)] for times in zip(*turns, strict=True)]
    return list(zip(*of_sides, strict=True))


def _ours(algorithm: str, options: dict[str, Any], train: Sentences, dev: Sentences) -> tuple[float, float, float]:
    tagger = SequenceTagger(algorithm, scheme="none", random_state=1, **options)
    fit, _ = _seconds(lambda: tagger.fit(*train))
    predict, found = _seconds(lambda: tagger.predict(dev.X))
    return fit, predict, flat_accuracy_score(dev.y, found)


def _peer(algorithm: str, options: dict[str, Any], train: Sentences, dev: Sentences) -> tuple[float, float, float]:
    trainer, tagger = pycrfsuite.Trainer(algorithm, options, verbose=False), pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model")

        def fit() -> None:
            for tokens, labels in zip(*train, strict=True):
                trainer.append(tokens, labels)
            trainer.train(file)

        seconds, _ = _seconds(fit)
        tagger.open(file)
        predict, found = _seconds(lambda: [tagger.tag(tokens) for tokens in dev.X])
        tagger.close()
    return seconds, predict, flat_accuracy_score(dev.y, found)


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def _data(smoke: bool) -> tuple[Sentences, Sentences, str]:
    """The first sentences of CoNLL-2003 where there is a folder of corpora, else of the embedded corpus."""
    data: Any
    if smoke or "STRUCTPERC_DATA" not in os.environ:
        data, name = Synthetic(train=60 if smoke else SENTENCES, dev=60, test=1, unit="sentence"), "the embedded corpus"
    else:
        files = {"train": "eng.train", "dev": "eng.testa"}
        folder, columns = Path(os.environ["STRUCTPERC_DATA"]) / "conll2003", ["word", "pos", "chunk", "label"]
        data = Conll(str(folder), files, columns, labels="IOB1", scheme="IOB1", unit="sentence")
        name = "CoNLL-2003"
    return _sentences(data.corpus("train")), _sentences(data.corpus("dev")), name


def _sentences(corpus: Any) -> Sentences:
    tags = corpus.columns.get("pos", corpus.columns["word"])
    tokens = corpus.sentences_of(list(zip(corpus.columns["word"], tags, strict=True)))[:SENTENCES]
    X = [[tutorial_features(sentence, t) for t in range(len(sentence))] for sentence in tokens]
    return Sentences(X, corpus.sentences_of(corpus.columns["label"])[:SENTENCES])


def tutorial_features(sentence: list[tuple[str, str]], t: int) -> dict[str, Any]:
    """Return the features of a token in the tutorial of sklearn-crfsuite."""
    word, tag = sentence[t]
    features = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "postag": tag,
        "postag[:2]": tag[:2],
    }
    for offset, outside in ((-1, "BOS"), (1, "EOS")):
        if 0 <= t + offset < len(sentence):
            word, tag = sentence[t + offset]
            features |= {
                f"{offset:+}:word.lower()": word.lower(),
                f"{offset:+}:word.istitle()": word.istitle(),
                f"{offset:+}:word.isupper()": word.isupper(),
                f"{offset:+}:postag": tag,
                f"{offset:+}:postag[:2]": tag[:2],
            }
        else:
            features[outside] = True
    return features
