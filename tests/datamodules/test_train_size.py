"""Parts of the training data of every source: nested, reproducible, in the order of the corpus."""

import json
from functools import partial

import pytest
from datasets import Dataset
from torch.optim import SGD

from structperc.chain import KBest
from structperc.criteria import CRFLoss, PerceptronLoss
from structperc.data import hub_datasets as hub_module
from structperc.data.corpus import Corpus
from structperc.datamodules.sources import Combined, Conll, Conllu, Hub, InMemory, Synthetic, Table
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.optim import Perceptron
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.tiny import fit

DOCUMENTS, SIZE = 8, 3  # of SIZE sentences each
WORDS = [[f"w{i}", f"v{i}"] for i in range(DOCUMENTS * SIZE)]
TAGS = [["B-PER", "I-PER"] if i % 2 else ["O", "B-LOC"] for i in range(len(WORDS))]
ROLES = {"word": "tokens", "label": "tags"}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Returns a data module of each kind with these sentences, or with the embedded corpus."""
    text, treebank = [], []
    for i, (words, tags) in enumerate(zip(WORDS, TAGS, strict=True)):
        lines = [f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True)]
        text += ["" if i % SIZE else "-DOCSTART- O\n\n", *lines, "\n"]
        treebank += [f"{j}\t{w}\t_\tNOUN" + 6 * "\t_" + "\n" for j, w in enumerate(words, 1)] + ["\n"]
    (tmp_path / "a.txt").write_text("".join(text))
    (tmp_path / "a.conllu").write_text("".join(treebank))
    rows = [{"tokens": words, "tags": tags} for words, tags in zip(WORDS, TAGS, strict=True)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(hub_module, "load_split", lambda *_: Dataset.from_list(rows))
    files = partial(Conll, str(tmp_path), {"train": "a.txt", "dev": "a.txt"}, ["word", "label"])
    makers = {
        "files": files,
        "only training": partial(Conll, str(tmp_path), {"train": "a.txt"}, ["word", "label"]),
        "documents": partial(files, unit="document"),
        "cached": partial(files, cache=str(tmp_path / "cache")),
        "incomplete": partial(files, incomplete=True),
        "treebank": partial(Conllu, str(tmp_path), {"train": "a.conllu"}),
        "table": partial(Table, str(tmp_path), {"train": "a.jsonl"}, ROLES),
        "hub": partial(Hub, "a/b", ROLES, {"train": "train"}),
        "memory": partial(InMemory, Dataset.from_list(rows), ROLES),
        "embedded": partial(Synthetic, train=DOCUMENTS, unit="document"),
        "combined": lambda **options: Combined([files(), files()], **options),
    }
    return lambda kind, **options: makers[kind](**options)


def sequences(corpus: Corpus) -> list[tuple]:
    """Document and columns of each sequence."""
    bounds = list(zip(corpus.starts[:-1].tolist(), corpus.starts[1:].tolist(), strict=True))
    columns = corpus.columns.values()
    return [(d, *(tuple(c[a:b]) for c in columns)) for d, (a, b) in zip(corpus.documents.tolist(), bounds, strict=True)]


def is_subsequence(part, whole) -> bool:
    left = iter(whole)
    return all(one in left for one in part)


KINDS = ("files", "documents", "cached", "incomplete", "treebank", "table", "hub", "memory", "embedded", "combined")


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_nested_and_keep_their_order(make, kind):
    whole = sequences(make(kind).corpus("train"))
    parts = [sequences(make(kind, train_size=n).corpus("train")) for n in (1, 3, 0.5, 1.0)]
    assert list(map(len, parts)) == [1, 3, len(whole) // 2, len(whole)]
    for smaller, larger in zip(parts, [*parts[1:], whole], strict=True):
        assert is_subsequence(smaller, larger)
    assert parts[-1] == whole
    assert sequences(make(kind, train_size=3).corpus("train")) == parts[1]
    others = [sequences(make(kind, train_size=3, seed=seed).corpus("train")) for seed in range(2, 6)]
    assert any(other != parts[1] for other in others)


def test_every_sequence_is_drawn_by_some_seed(make):
    drawn = {one for seed in range(40) for one in sequences(make("files", train_size=2, seed=seed).corpus("train"))}
    assert drawn == set(sequences(make("files").corpus("train")))


@pytest.mark.parametrize("holdout", [4, 0.25])
def test_the_holdout_does_not_depend_on_the_size(make, holdout):
    data = make("only training", holdout=holdout)
    for seed in (1, 2):
        part = make("only training", holdout=holdout, train_size=5, seed=seed)
        assert sequences(part.corpus("dev")) == sequences(data.corpus("dev"))
        assert len(part.corpus("train")) == 5
        assert is_subsequence(sequences(part.corpus("train")), sequences(data.corpus("train")))
    number = len(data.corpus("train"))
    with pytest.raises(InputError, match=f"data.train_size .*{number + 1}.* {number} "):
        make("only training", holdout=holdout, train_size=number + 1).corpus("train")


@pytest.mark.parametrize("size", [0, -3, 0.0, -0.5, 2.5, float("nan"), float("inf")])
def test_impossible_sizes(make, size):
    with pytest.raises(InputError, match=r"data\.train_size"):
        make("files", train_size=size)


@pytest.mark.parametrize("kind", ["files", "cached"])
@pytest.mark.parametrize(("criterion", "optimizer"), [(PerceptronLoss(), Perceptron), (CRFLoss(), SGD)])
def test_a_type_that_only_the_rest_has(make, kind, criterion, optimizer):
    """The label set is that of all training data, so that development labels are known; features are of the part."""
    data = make(kind, train_size=1)
    assert len(set(data.corpus("train").columns["label"])) == 2 < len(set(data.corpus("dev").columns["label"]))
    features = FeatureExtractor(["w[0]"], cutoff=1, progress=False)
    tagger = Tagger(features, SparseLinear(sparse_grad=False), criterion, KBest(1), optimizer)
    trainer = fit(tagger, data, 1)
    assert tagger.labels.names == make(kind).label_set().names
    assert tagger.features.n_node_features == 2  # the words of one sentence
    assert 0 <= trainer.callback_metrics["dev/score"] < 1
