"""sklearn-crfsuite: L-BFGS with the options of its tutorial, and the tutorial's features or those of a configuration.

The tutorial also uses parts of speech, which running text does not have: they are left out.
"""

import argparse
import pickle
from collections.abc import Callable
from typing import Any

from sklearn_crfsuite import CRF

from benchmarks.taggers.system_run import Sentences, Tag, Task, run

Extract = Callable[[Sentences], list[list[Any]]]  # features of each token, by sentence


def tutorial_features(words: list[str], i: int) -> dict[str, str | bool | float]:
    """The features of the tutorial (CoNLL-2002), without parts of speech."""
    word = words[i]
    features: dict[str, str | bool | float] = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
    }
    for offset, end in ((-1, "BOS"), (1, "EOS")):
        if not 0 <= i + offset < len(words):
            features[end] = True
            continue
        other = words[i + offset]
        features[f"{offset:+}:word.lower()"] = other.lower()
        features[f"{offset:+}:word.istitle()"] = other.istitle()
        features[f"{offset:+}:word.isupper()"] = other.isupper()
    return features


def tutorial(_: Task) -> Extract:
    return lambda text: [[tutorial_features(s.words, i) for i in range(len(s.words))] for s in text]


def from_configuration(task: Task) -> Extract:
    """The features of a configuration of structperc, by name."""
    from structperc.data import Corpus
    from structperc.experiments.experiment import dry_run

    def corpus(text: Sentences) -> Corpus:
        columns = [{"word": sentence.words, "label": sentence.labels} for sentence in text]
        return Corpus.from_sentences(columns, [sentence.document for sentence in text])

    features = dry_run([f"--config={task.options.features}"]).model.features
    features.fit(corpus(task.train))
    names = features.index.names("node")

    def extract(text: Sentences) -> list[list[Any]]:
        whole = corpus(text)
        nodes = features.encode(whole).nodes
        tokens = nodes.ids.split(nodes.counts.tolist())
        return whole.sentences_of([[names[i] for i in ids.tolist()] for ids in tokens])

    return extract


def train(task: Task) -> Tag:
    extract = tutorial(task) if task.options.features == "tutorial" else from_configuration(task)
    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(extract(task.train), [sentence.labels for sentence in task.train])
    (task.model / "model.pickle").write_bytes(pickle.dumps(crf))
    return lambda text: [list(labels) for labels in crf.predict(extract(text))]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--features", default="tutorial", help="tutorial (default), or a configuration of structperc")


if __name__ == "__main__":
    run(["sklearn-crfsuite", "python-crfsuite"], train, add_options)
