"""Part-of-speech taggers that learn from the same sentences: CRFsuite, NLTK and ours.

window    CRFsuite's averaged perceptron: words -2..+2, two pairs of words, affixes up to nine letters, shape, a bias
set_e     the same learner with the features of configs/studies/CORPUS.yaml#guided (set E of Shen et al. 2007, Table 2)
nltk      NLTK's PerceptronTagger: from left to right, one decision at a time, with features of its own
averaged  configs/studies/CORPUS.yaml#averaged, our averaged perceptron of a chain
guided    configs/studies/CORPUS.yaml#guided, our guided learning

The peers end with the averaged weights of their last iteration. Of ours, as always in `fit`, the epoch that is best on
the development file counts, and looking at it after each epoch is part of the training time.
"""

import contextlib
import ctypes
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pycrfsuite
from nltk.tag.perceptron import PerceptronTagger

from structperc.data import Conll, Corpus
from structperc.features import FeatureExtractor
from structperc.training.program import Program

AFFIXES = 9
SHAPES: dict[str, Callable[[str], bool]] = {"number": str.isdigit, "uppercase": str.isupper, "hyphen": "-".__eq__}

Strings = list[list[str]]  # by sentence, or by token
Extraction = Callable[[Corpus], list[Strings]]  # features of each token, by sentence


class Task(NamedTuple):
    """What all taggers are given."""

    study: str  # with rows averaged and guided
    data: Conll
    templates: list  # of the row guided
    seed: int

    @property
    def train(self) -> Corpus:
        return self.data.corpus("train")

    @property
    def dev(self) -> Corpus:
        return self.data.corpus("dev")


class Trained(NamedTuple):
    """A tagger, corpus -> labels, and how long it has learned; features count, reading files does not."""

    tag: Callable[[Corpus], Strings]
    seconds: float


def column(corpus: Corpus, role: str) -> Strings:
    """A column of a corpus by sentence."""
    return corpus.sentences_of(corpus.columns[role])


# -- peers -----------------------------------------------------------------------------------------------------


def crfsuite(task: Task, iterations: int, learn: Callable[[Task], Extraction]) -> Trained:
    """CRFsuite with its own defaults on features as strings."""
    start = time.perf_counter()
    features = learn(task)
    trainer = pycrfsuite.Trainer("averaged-perceptron", {"max_iterations": iterations}, verbose=False)
    for strings, labels in zip(features(task.train), column(task.train, "label"), strict=True):
        trainer.append(strings, labels)
    ctypes.CDLL(None).srand(task.seed)  # it shuffles sentences by C's rand() and offers no seed
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        trainer.train(model)
        tagger.open(model)
    seconds = time.perf_counter() - start
    return Trained(lambda corpus: [tagger.tag(strings) for strings in features(corpus)], seconds)


def nltk(task: Task, iterations: int) -> Trained:
    start = time.perf_counter()
    random.seed(task.seed)  # of the order of sentences
    tagger = PerceptronTagger(load=False)
    pairs = zip(column(task.train, "word"), column(task.train, "label"), strict=True)
    tagger.train([[*zip(words, labels, strict=True)] for words, labels in pairs], nr_iter=iterations)
    seconds = time.perf_counter() - start
    return Trained(lambda corpus: [[label for _, label in tagger.tag(s)] for s in column(corpus, "word")], seconds)


# -- features of CRFsuite --------------------------------------------------------------------------------------


def windows(_: Task) -> Extraction:
    """Words and shapes as they come: nothing is learned."""
    return lambda corpus: [_window(words) for words in column(corpus, "word")]


def _window(words: list[str]) -> Strings:
    near = ["_B-2", "_B-1", *words, "_B+1", "_B+2"]
    return [[*_context(near[t : t + 5]), *_form(word), "bias"] for t, word in enumerate(words)]


def _context(near: list[str]) -> Iterator[str]:
    yield from (f"w[{i}]={word}" for i, word in enumerate(near, -2))
    yield from (f"w[{i}]|w[{i + 1}]={near[i + 2]}|{near[i + 3]}" for i in (-1, 0))


def _form(word: str) -> Iterator[str]:
    for n in range(1, min(AFFIXES, len(word)) + 1):
        yield f"p{n}={word[:n]}"
        yield f"s{n}={word[-n:]}"
    yield from (name for name, has in SHAPES.items() if any(map(has, word)))


def named(task: Task) -> Extraction:
    """The features of our templates by name; those that occur once in training are left out, as ours are."""
    features = FeatureExtractor(task.templates, progress=False)
    features.fit(task.train)
    names = features.index.names("node")

    def strings(corpus: Corpus) -> list[Strings]:
        nodes = features.encode(corpus).nodes
        return corpus.sentences_of([[names[i] for i in ids.tolist()] for ids in nodes.ids.split(nodes.counts.tolist())])

    return strings


# -- ours ------------------------------------------------------------------------------------------------------


def fit(task: Task, iterations: int, config: str) -> Trained:
    """As the command `fit` trains; its report goes where progress goes."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        options = {
            "config": f"{task.study}#{config}",
            "seed_everything": task.seed,
            "data.seed": task.seed,
            "data.path": task.data.path,
            "trainer.max_epochs": iterations,
            "trainer.default_root_dir": folder,
            "trainer.accelerator": "cpu",
        }
        done = Program(["fit", *(f"--{name}={value}" for name, value in options.items())])
        done.run()
    return Trained(done.model.label, done.seconds)


TAGGERS: dict[str, Callable[[Task, int], Trained]] = {
    "window": partial(crfsuite, learn=windows),
    "set_e": partial(crfsuite, learn=named),
    "nltk": nltk,
    "averaged": partial(fit, config="averaged"),
    "guided": partial(fit, config="guided"),
}
