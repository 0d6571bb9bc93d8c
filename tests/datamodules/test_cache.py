"""What a cache keeps is what would be made anew; all it is made from tells it apart; nothing half-built is used."""

import errno
import os
import pickle
import signal
import time
from contextlib import suppress

import numpy as np
import pytest
import torch

from structperc.data.arrays import ArrayWriter, FileArray, MemoryArray
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.words import word_shape
from structperc.datamodules import cache, encoded
from structperc.datamodules.cache import CorpusCache, CorpusStore, corpus_digest, file_digest, is_cacheable
from structperc.datamodules.encoded import EncodedCorpus, encode_arrays
from structperc.datamodules.sources import Conll
from structperc.errors import InputError
from structperc.features import (
    CaseElsewhere,
    DocumentAttribute,
    FeatureExtractor,
    Gazetteer,
    LineKind,
    LongestMention,
    OtherMentions,
    TokenMajority,
    format_weighted_features,
)
from structperc.reranking import FirstLabels
from tests.errors import error_message

COLUMNS = ["word", "pos", "chunk", "label"]
NODE = [{"of": ["w", "shape"], "at": [-1, 0, 1]}, "w[-1]|pos[0]"]
READS_DOCUMENTS = {  # which a template each asks for
    "case": CaseElsewhere(),
    "kind": LineKind(),
    "name": LongestMention("w", "before"),
    "near": OtherMentions("shape(name)", -1),
}
LABELS = LabelSet.from_corpus(["I-PER", "I-LOC", "I-ORG", "I-MISC"], "IOB1")


def data(path, **options):
    return Conll(str(path.parent), {"train": path.name}, **{"columns": COLUMNS, "unit": "document", **options})


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def assert_same_corpora(one, other):
    assert dict(one.columns) == dict(other.columns)
    assert one.name == other.name
    for name in ("starts", "sentences", "documents", "lines"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def assert_same_batches(one, other):
    for rows in ([0], [2, 0, 1], list(range(len(one)))):
        for a, b in zip(flat(one[rows]), flat(other[rows]), strict=True):
            assert type(a) is type(b)
            assert a == b if not torch.is_tensor(a) else a.dtype == b.dtype and torch.equal(a, b)


def flat(value):
    return [leaf for one in value for leaf in flat(one)] if isinstance(value, tuple) else [value]


# -- what is kept ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_a_corpus_is_read_once(text, tmp_path, unit, monkeypatch):
    plain = data(text, unit=unit, types={"PER": "NAME"}).corpus("train")
    for _ in range(2):
        kept = data(text, unit=unit, types={"PER": "NAME"}, cache=str(tmp_path / "cache"))
        assert_same_corpora(plain, kept.corpus("train"))
        monkeypatch.setattr(Conll, "read", None)


def made(**options):
    node = [*NODE, *(f"{name}[0]|w[0]" for name in options.get("documents", {}))]
    return FeatureExtractor(node, cutoff=1, progress=False, **options)


def features_of(corpus, **options):
    return CorpusStore().fit_features(made(**options), corpus)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"edge": NODE},
        {"edge": ["w[0]"]},
        {"weighted_column": "listed"},
        {"hash_bits": 9},
        {"documents": READS_DOCUMENTS},
        {"documents": {"most": TokenMajority("chunk", "corpus")}},
    ],
)
@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_batches_of_files_and_memory(text, tmp_path, monkeypatch, options, unit):
    monkeypatch.setattr(encoded, "PIECE", 37)  # tokens, fewer than in some documents
    corpus = data(text, unit=unit).corpus("train")
    if "weighted_column" in options:  # of weights other than 1 from the middle on
        some = [
            format_weighted_features([("x", 1 + (t > corpus.tokens // 2)), (word, 1)])
            for t, word in enumerate(corpus.columns["word"])
        ]
        corpus = corpus.replace_column("listed", some)
    features = features_of(corpus, **options)
    held = EncodedCorpus(corpus, features, LabelSet.from_corpus(corpus.columns["label"], "IOB2"))
    for _ in range(2):
        store = CorpusCache(str(tmp_path)).arrays
        filed = EncodedCorpus(corpus, features, LabelSet.from_corpus(corpus.columns["label"], "IOB2"), encode=store)
        assert_same_batches(held, filed)


def test_empty_corpora(tmp_path):
    for sentences in ([{"word": ["a", "b"]}, {"word": []}, {"word": ["b"]}], [{"word": []}], []):
        corpus = Corpus.from_sentences(sentences)
        features = FeatureExtractor(["w[0]", "bias"], cutoff=1, progress=False)
        features.fit(corpus)
        held = EncodedCorpus(corpus, features, LABELS)
        filed = EncodedCorpus(corpus, features, LABELS, encode=CorpusCache(str(tmp_path)).arrays)
        for rows in ([*range(len(corpus))], [0] * bool(len(corpus))):
            for a, b in zip(flat(held[rows]), flat(filed[rows]), strict=True):
                assert a == b if not torch.is_tensor(a) else torch.equal(a, b)


def test_place_of_an_unknown_label(text, tmp_path):
    corpus = data(text).corpus("train")
    with pytest.raises(InputError, match=r"train.txt:\d+: ") as told:
        encode_arrays(corpus, features_of(corpus), LabelSet(("O",)))
    found = error_message(lambda: CorpusCache(str(tmp_path)).arrays(corpus, features_of(corpus), LabelSet(("O",))))
    assert str(told.value) == found
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "options",
    [{}, {"weighted_column": "pos"}, {"hash_bits": 10, "weighted_column": "pos"}, {"documents": READS_DOCUMENTS}],
)
def test_features_are_fitted_once(text, tmp_path, monkeypatch, options):
    corpus = data(text).corpus("train")
    plain = features_of(corpus, **options)
    for _ in range(3):
        found = CorpusCache(str(tmp_path)).fit_features(made(**options), corpus)
        assert found.state_dict_json() == plain.state_dict_json()
        assert {name: array.tolist() for name, array in found.state_arrays().items()} == {
            name: array.tolist() for name, array in plain.state_arrays().items()
        }
        assert found.progress is False
        assert CorpusCache(str(tmp_path)).fit_features(found, corpus).state_dict_json() == plain.state_dict_json()
        monkeypatch.setattr(FeatureExtractor, "fit", None)


class OfNobodyKnowsWhat(DocumentAttribute):
    def transform(self, corpus, lookup):
        return corpus.factorize("word")


@pytest.mark.parametrize("own", [OfNobodyKnowsWhat, FirstLabels])
def test_own_attributes_are_not_cached(text, tmp_path, own):
    corpus = data(text).corpus("train")
    features = made(documents={"case": CaseElsewhere(), "own": own()})
    assert not is_cacheable(features)
    assert not is_cacheable(FeatureExtractor(["own[0]"], attributes={"own": word_shape}))
    if own is OfNobodyKnowsWhat:
        store = CorpusCache(str(tmp_path))
        store.arrays(corpus, store.fit_features(features, corpus), data(text).label_set())
        assert names(tmp_path) == []


def test_key_of_features(text, tmp_path):
    corpus, seen = data(text).corpus("train"), []
    for words, options in (
        (corpus, {}),
        (corpus, {"edge": NODE}),
        (corpus, {"cutoff": 1}),
        (corpus, {"weighted_column": "pos"}),
        (corpus, {"hash_bits": 10}),
        (corpus, {"hash_bits": 11}),
        (corpus, {"within": "sentence"}),
        (corpus.slice(0, 5), {}),
        (corpus.replace_column("chunk", ["X"] * corpus.tokens), {}),  # which no template reads
        (corpus, {"documents": {"most": LongestMention("w", "here")}}),
        (corpus, {"documents": {"most": LongestMention("w", "first")}}),
        (corpus, {"documents": {"most": LongestMention("chunk", "first")}}),
        (
            corpus.replace_column("chunk", ["X"] * corpus.tokens),
            {"documents": {"most": LongestMention("chunk", "first")}},
        ),
    ):
        node = [*NODE, *(f"{name}[0]" for name in options.get("documents", {}))]
        CorpusCache(str(tmp_path)).fit_features(FeatureExtractor(node, progress=False, **options), words)
        seen.append(len(names(tmp_path)))
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12]


# -- what tells them apart ---------------------------------------------------------------------------------------


def test_key_of_a_corpus(text, tmp_path):
    made = set()
    copy = tmp_path / "copy.txt"

    def look(path, **options):
        data(path, cache=str(tmp_path / "cache"), **options).corpus("train")
        made.add(len(names(tmp_path / "cache")))

    look(text)
    copy.write_bytes(text.read_bytes())
    look(copy)
    assert made == {1}  # neither name nor time counts
    changed = text.read_bytes().replace(b"heard", b"heart", 1)
    copy.write_bytes(changed)
    os.utime(copy, ns=(text.stat().st_atime_ns, text.stat().st_mtime_ns))
    look(copy)
    for options in (
        {"columns": ["word", "pos", "_", "label"]},
        {"unit": "sentence"},
        {"scheme": "IOBES", "labels": "IOB2"},
        {"labels": "IOB1"},
        {"strict": True},
        {"types": {"PER": "X"}},
        {"docstart": "-X-", "unit": "sentence"},
        {"comments": True},
    ):
        look(text, **options)
    assert len(names(tmp_path / "cache")) == 10


def test_file_changed_while_read(text, tmp_path, monkeypatch):
    copy, real = tmp_path / "copy.txt", Conll.read
    copy.write_bytes(text.read_bytes())

    def read(*args):
        found = real(*args)
        copy.write_bytes(text.read_bytes() + b"a X Y O\n")
        return found

    monkeypatch.setattr(Conll, "read", read)
    with pytest.raises(InputError, match=r"copy.txt: "):
        data(copy, cache=str(tmp_path / "cache")).corpus("train")
    assert names(tmp_path / "cache") == []


def test_key_of_arrays(text, tmp_path, monkeypatch):
    corpus = data(text).corpus("train")
    labels = LabelSet.from_corpus(corpus.columns["label"], "IOB2")
    features = features_of(corpus)
    list_of_names = tmp_path / "names.txt"
    seen = []

    def look(corpus=corpus, features=features, labels=labels):
        CorpusCache(str(tmp_path / "cache")).arrays(corpus, features, labels)
        seen.append(len(names(tmp_path / "cache")))

    look()
    look()
    look(corpus.replace_column("pos", ["X"] * corpus.tokens))
    look(corpus.replace_column("label", ["O"] * corpus.tokens))
    look(corpus.replace_column("chunk", ["X"] * corpus.tokens))  # which no template reads
    look(corpus.replace_column("weight", ["0.5"] * corpus.tokens))
    look(corpus.replace_column("allowed", ["?"] * corpus.tokens))
    look(corpus.slice(0, 5))
    look(labels=LabelSet((*labels.names, "B-X", "I-X")))
    look(labels=LabelSet(labels.names, "IOB1"))
    look(features=features.subset("node", np.arange(features.n_node_features) > 0))
    for phrases in ("Lindal", "Lindal\nRome"):
        list_of_names.write_text(phrases)
        node = [*NODE, "go[0]"]
        own = FeatureExtractor(node, cutoff=1, gazetteers={"go": Gazetteer(str(list_of_names))}, progress=False)
        look(features=CorpusStore().fit_features(own, corpus))
    monkeypatch.setattr(cache, "__version__", "another")
    look()
    assert seen == [1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]


def test_digests_of_corpora():
    rows = [["ab", "c"]], [["a", "bc"]], [["a", "b", "a"]], [["a", "b", "b"]], [["a", "b"], ["a"]], [["a"], ["b", "a"]]
    corpora = [Corpus.from_sentences([{"word": words} for words in sentences]) for sentences in rows]
    corpora.append(Corpus.from_sentences([{"word": words} for words in rows[-1]], [0, 0], "document"))
    assert len({corpus_digest(corpus, ["word"]) for corpus in corpora}) == len(corpora)


def test_digests_of_files_and_folders(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    before = file_digest(tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    renamed = file_digest(tmp_path)
    (tmp_path / "c").write_text("3")
    assert len({before, renamed, file_digest(tmp_path)}) == 3
    (tmp_path / "c").write_text("2")
    (tmp_path / "c").rename(tmp_path / "b")
    assert file_digest(tmp_path) == before


# -- what goes wrong ---------------------------------------------------------------------------------------------


def test_damaged_files(text, tmp_path, caplog):
    def look():
        return data(text, cache=str(tmp_path)).corpus("train")

    plain = look()
    (folder,) = (tmp_path / name for name in names(tmp_path))
    files = sorted(folder.iterdir())
    assert len(files) > 10
    for file in files:
        content = file.read_bytes()
        for damaged in (content[:-1], bytes([content[0] ^ 1, *content[1:]]), None):
            if damaged is None:
                file.unlink()
            else:
                file.write_bytes(damaged)
            caplog.clear()
            assert_same_corpora(plain, look())
            (message,) = [record.getMessage() for record in caplog.records]
            assert f"{folder}: this folder of arrays is damaged (" in message
            assert "writing it again" in message
            assert file.read_bytes() == content


def child(work):
    """Runs work in a fork; -> its process."""
    process = os.fork()
    if not process:
        with suppress(BaseException):
            work()
        os._exit(0)
    return process


def test_a_killed_build_leaves_nothing_in_use(text, tmp_path, monkeypatch):
    """Killed before each write and after the last one; the next build sweeps what was left."""
    plain, writes = data(text).corpus("train"), []
    real = ArrayWriter.append
    monkeypatch.setattr(ArrayWriter, "append", lambda *args: (writes.append(args[1]), real(*args))[1])
    CorpusCache(str(tmp_path / "whole")).corpus(lambda: 1, lambda: plain)
    monkeypatch.undo()
    assert len(writes) > 10
    for turn in range(len(writes) + 1):
        folder = tmp_path / str(turn)

        def build(folder=folder, turn=turn):
            seen = []

            def append(*args):
                if len(seen) == turn:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen.append(args)
                real(*args)

            ArrayWriter.append = append
            if turn == len(writes):
                os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            CorpusCache(str(folder)).corpus(lambda: 1, lambda: plain)

        _, status = os.waitpid(child(build), 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert names(folder) == []
        assert [path for path in folder.iterdir() if path.name.endswith(".part")]
        assert_same_corpora(plain, CorpusCache(str(folder)).corpus(lambda: 1, lambda: plain))
        assert not [path for path in folder.iterdir() if path.name.endswith(".part")]


def test_concurrent_builds(text, tmp_path):
    plain = data(text).corpus("train")
    built = tmp_path / "built"

    def build():
        def read():
            with built.open("a") as file:
                file.write("x")
            time.sleep(0.3)
            return plain

        CorpusCache(str(tmp_path / "cache")).corpus(lambda: 1, read)

    for process in [child(build) for _ in range(3)]:
        assert os.waitpid(process, 0)[1] == 0
    assert built.read_text() == "x"
    assert len(names(tmp_path / "cache")) == 1


@pytest.mark.parametrize("name", ["node_keys", "nodes.ids"])
def test_a_full_disk_is_one_line(runs, tmp_path, monkeypatch, capsys, name):
    folder, real, reason = tmp_path / "cache", open, os.strerror(errno.ENOSPC)

    class Full:
        def __init__(self, file):
            self.close = file.close

        def write(self, content):
            raise OSError(errno.ENOSPC, reason)

    def opened(path, *given, **options):
        file = real(path, *given, **options)
        return Full(file) if str(path).startswith(str(folder)) and str(path).endswith(f"/{name}") else file

    monkeypatch.setattr("builtins.open", opened)
    assert runs("fit", f"--data.cache={folder}") == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("structperc: ")]
    assert f"{name}: cannot write this file ({reason})" in line
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")]


def test_invalid_cache(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/cache: "):
        CorpusCache(str(tmp_path / "file" / "cache")).corpus(lambda: 1, lambda: Corpus.from_sentences([]))
    with pytest.raises(InputError, match=r"environment variable"):
        CorpusCache("$NO_SUCH_VARIABLE/cache")


# -- stretches of files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7,), (7, 3)])
def test_slices_of_files_and_memory(tmp_path, monkeypatch, shape):
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    array.tofile(tmp_path / "array")
    filed = FileArray(tmp_path / "array", "<i4", shape)
    spans = [([0], [7]), ([5, 0, 2, 2], [7, 2, 2, 3]), ([], [])]
    for _ in range(2):
        for starts, stops in spans:
            own = np.array(starts, np.int64), np.array(stops, np.int64)
            for found in (filed.take(*own), pickle.loads(pickle.dumps(filed)).take(*own)):
                np.testing.assert_array_equal(found, MemoryArray(array).take(*own))
                assert found.dtype == np.int32
        monkeypatch.delattr(os, "preadv", raising=False)
    np.testing.assert_array_equal(filed.read(), array)
    monkeypatch.undo()
    os.truncate(tmp_path / "array", 8)
    with pytest.raises(OSError, match="is truncated"):
        filed.take(np.array([0]), np.array([7]))
