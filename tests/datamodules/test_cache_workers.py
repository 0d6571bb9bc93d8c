"""What several processes make for a cache is what one makes, byte for byte; what goes wrong among them is one line."""

import os
import pickle
import signal
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from itertools import cycle

import pytest

from structperc import process_pool
from structperc.data.arrays import ArrayWriter
from structperc.datamodules import encoded
from structperc.datamodules.cache import CorpusCache
from structperc.datamodules.sources import Conll
from structperc.errors import InputError
from structperc.features import (
    CaseElsewhere,
    FeatureExtractor,
    Gazetteer,
    exact_index,
    format_weighted_features,
    hashed_index,
)
from structperc.features.string_arrays import View
from structperc.process_pool import Workers

COLUMNS = ["word", "pos", "chunk", "label"]
NODE = [{"of": ["w", "shape"], "at": [-1, 0, 1]}, "w[-1]|pos[0]"]
TWO = Workers(2, "set data.cache_workers: 1")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """All is cut into many pieces, each worth a worker."""
    monkeypatch.setattr(encoded, "PIECE", 37)
    monkeypatch.setattr(View.chunks, "__defaults__", (37,))
    monkeypatch.setattr(encoded, "PIECES_PER_WORKER", 1)
    for module in (exact_index, hashed_index):
        monkeypatch.setattr(module, "MIN_CHUNKS", 1)


@pytest.fixture
def seen(monkeypatch):
    """Workers that are no processes, but are given and give copies; -> how many there were each time."""
    numbers = []

    @contextmanager
    def start_workers(workers, make):
        if workers.number > 1:
            numbers.append(workers.number)
        made = cycle([sent(make)() for _ in range(workers.number)])
        yield lambda given: (sent(next(made)(sent(one))) for one in given)

    def sent(thing):
        return pickle.loads(pickle.dumps(thing))

    monkeypatch.setattr(process_pool, "start_workers", start_workers)
    return numbers


def build(text, folder, number, bag=None, **options):
    """The content of all files of a cache, by their names in it."""
    data = Conll(
        str(text.parent), {"train": text.name}, COLUMNS, unit="document", cache=str(folder), cache_workers=number
    )
    corpus = data.corpus("train")
    if bag is not None:
        corpus = corpus.replace_column("listed", bag)
    node = [*NODE, *(f"{name}[0]" for kind in ("gazetteers", "documents") for name in options.get(kind, {}))]
    features = FeatureExtractor(node, weighted_column=bag and "listed", progress=False, **options)
    data.store.arrays(corpus, data.store.fit_features(features, corpus), data.label_set())
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*-*/*")}


@pytest.mark.parametrize(
    "options",
    [
        {"cutoff": 1, "edge": ["w[0]"]},
        {"edge": NODE, "gazetteers": {"go": Gazetteer(["Lindal", "New York"])}},
        {"documents": {"case": CaseElsewhere()}, "within": "sentence"},
        {"hash_bits": 9},
    ],
)
def test_independence_of_the_number_of_workers(text, tmp_path, seen, options):
    one = build(text, tmp_path / "1", 1, **options)
    assert seen == []
    assert build(text, tmp_path / "3", 3, **options) == one
    assert len(one) > 20
    assert seen == ([3, 3, 3] if "edge" in options else [3, 3])


def test_weights_in_any_piece(text, tmp_path, seen):
    tokens = sum(1 for line in text.read_text().splitlines() if line and "-DOCSTART-" not in line)
    bag = [format_weighted_features([("x", 1 + (t > tokens // 2)), ("y", 1)]) for t in range(tokens)]
    one = build(text, tmp_path / "1", 1, bag)
    assert any(name.endswith("nodes.weights") for name in one)
    assert build(text, tmp_path / "3", 3, bag) == one


def test_invalid_cache_workers(tmp_path):
    with pytest.raises(InputError, match=r"data.cache_workers .*0"):
        Conll(".", {}, COLUMNS, cache=str(tmp_path), cache_workers=0)
    with pytest.raises(InputError, match=r"data.cache_workers.*data.cache"):
        Conll(".", {}, COLUMNS, cache_workers=2)


def test_a_small_corpus_needs_no_workers(text, tmp_path, seen, left, monkeypatch):
    monkeypatch.undo()
    build(text, tmp_path, 3)
    assert not left()
    assert seen == []


@pytest.mark.slow
def test_files_of_three_processes(text, tmp_path, monkeypatch):
    monkeypatch.setattr(process_pool, "LARGE", 1)  # of what this process sends
    options = {"cutoff": 1, "documents": {"case": CaseElsewhere()}}
    assert build(text, tmp_path / "3", 3, **options) == build(text, tmp_path / "1", 1, **options)


def names(folder):
    return [path.name for path in folder.iterdir() if not path.name.startswith(".")]


def kill_them(left):
    for process in left():  # other tests have processes here, too
        os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("happens", "message"),
    [
        (kill_them, r"memory; set data.cache_workers: 1$"),
        (None, r"train.txt: column 'pos' lists 'a:b'; give a name, or name:weight with"),
    ],
)
def test_failing_workers(text, tmp_path, left, monkeypatch, happens, message):
    data = Conll(str(text.parent), {"train": text.name}, COLUMNS, unit="document")
    corpus, labels, written = data.corpus("train"), data.label_set(), []
    features = FeatureExtractor(NODE, weighted_column="pos", progress=False)
    features.fit(corpus)
    real = ArrayWriter.append

    def append(self, name, rows):
        written.append(name)
        if happens is not None and written.count("nodes.ids") == 2:
            happens(left)
        real(self, name, rows)

    monkeypatch.setattr(ArrayWriter, "append", append)
    if happens is None:
        corpus = corpus.replace_column("pos", [*corpus.columns["pos"][:-1], "a:b"])
    with pytest.raises(InputError, match=message):
        CorpusCache(str(tmp_path), TWO).arrays(corpus, features, labels)
    assert "nodes.ids" in written
    assert names(tmp_path) == []
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    assert not left()


@pytest.mark.slow
def test_files_of_killed_builds_are_removed(text, tmp_path, monkeypatch):
    monkeypatch.setattr(process_pool, "LARGE", 1)
    corpus = Conll(str(text.parent), {"train": text.name}, COLUMNS, unit="document").corpus("train")

    def work():
        Future.result = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # the first time that one is awaited
        CorpusCache(str(tmp_path), TWO).fit_features(FeatureExtractor(NODE, progress=False), corpus)

    process = os.fork()
    if not process:
        with suppress(BaseException):
            work()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    (left,) = [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    assert list(left.glob("tmp*/tmp*"))
    assert names(tmp_path) == []
    CorpusCache(str(tmp_path), TWO).fit_features(FeatureExtractor(NODE, progress=False), corpus)
    assert len(names(tmp_path)) == 1
    assert not left.exists()
