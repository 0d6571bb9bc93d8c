"""Data modules: files become sequences with labels in the scheme that the tagger learns."""

import pytest

from structperc.data.corpus import Corpus
from structperc.datamodules.sources import Conll, Conllu, Hub, Synthetic
from structperc.errors import InputError

IOB1 = "-DOCSTART- O\n\nAnna I-PER\nBo B-PER\nslept O\n\nRome I-LOC\n\n-DOCSTART- O\n\nBo I-PER\n"
CONLLU = """# newdoc
# text = vámonos a casa
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
2.1\tyo\tyo\tPRON\tP\t_\t_\t_\t_\t_
3\ta\ta\tADP\tE\t_\t4\tcase\t_\t_
4\tcasa\tcasa\tNOUN\tN\t_\t1\tobl\t_\t_

"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text(IOB1)
    (tmp_path / "a.conllu").write_text(CONLLU)
    return tmp_path


def conll(folder, **options):
    return Conll(path=str(folder), files={"train": "a.txt"}, columns=["word", "label"], labels="IOB1", **options)


def test_documents_in_another_scheme(folder):
    corpus = conll(folder, unit="document", scheme="IOBES").corpus("train")
    assert corpus.columns["label"] == ["S-PER", "S-PER", "O", "S-LOC", "S-PER"]
    assert corpus.lengths.tolist() == [4, 1]


def test_sentences(folder):
    corpus = conll(folder).corpus("train")
    assert corpus.columns["label"] == ["B-PER", "B-PER", "O", "B-LOC", "B-PER"]
    assert corpus.lengths.tolist() == [3, 1, 1]


def test_missing_split(folder):
    data = conll(folder)
    assert not data.has("dev")
    with pytest.raises(InputError, match="split dev"):
        data.corpus("dev")


def test_treebank(folder):
    data = Conllu(path=str(folder), files={"train": "a.conllu"}, tags="xpos")
    assert data.scheme == "none"
    assert data.corpus("train").columns["label"] == list("VPEN")


UNTAGGED = CONLLU.replace("VERB", "_").replace("PRON", "_").replace("ADP", "_").replace("NOUN", "_")


def test_training_data_without_labels(folder):
    (folder / "untagged.conllu").write_text(UNTAGGED)
    for data, message in (
        (Conll(str(folder), {"train": "a.txt"}, ["word"]), r"a\.txt:3: .* data\.columns"),
        (Conllu(str(folder), {"train": "untagged.conllu"}), r"conllu:4: .* data\.tags"),
    ):
        assert data.has("train")
        with pytest.raises(InputError, match=message):
            data.corpus("train")
    assert Conllu(str(folder), {"train": "untagged.conllu"}, "xpos").corpus("train").columns["label"] == list("VPEN")


def test_data_without_any_segment(folder, caplog):
    (folder / "o.txt").write_text("Anna O\nslept O\n")
    with caplog.at_level("WARNING"):
        data = Conll(str(folder), {"train": "o.txt", "dev": "o.txt"}, ["word", "label"])
        assert data.corpus("dev").tokens == 2
        assert "o.txt: " in caplog.text
        caplog.clear()
        assert len(data.label_set()) == 1
        assert "o.txt: " in caplog.text
        caplog.clear()
        assert len(data.label_set()) == 1
        assert not caplog.records
        assert len(Conll(str(folder), {"train": "o.txt"}, ["word", "label"], scheme="none").label_set()) == 1
    assert "only O" in caplog.text


def test_unlabelled_text(folder):
    data = Conll(str(folder), {"dev": "a.txt"}, ["word"])
    for stage in ("fit", "validate"):
        with pytest.raises(InputError, match=r"a\.txt:3: |split train"):
            data.encode(lambda corpus: corpus, stage)
    data.encode(lambda corpus: corpus, "predict")
    assert data.encoded("dev").columns["word"][0] == "Anna"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Conll(".", {"valid": "a"}, []), "data.files: unknown split 'valid'; .*; did you mean dev?"),
        (lambda: Hub("a/b", {}, {"validation": "a"}), "data.splits: unknown split 'validation'; .* dev?"),
        (lambda: Synthetic(predict="trian"), "data.predict: unknown split 'trian'; .*; did you mean train?"),
        (lambda: Synthetic(batch_size=0), "data.batch_size "),
        (lambda: Synthetic(seed=-1), "data.seed "),
    ],
)
def test_options_out_of_range(make, message):
    with pytest.raises(InputError, match=message):
        make()


def words(corpus):
    return corpus.sentences_of(corpus.columns["word"])


def test_holdout_of_sentences(folder):
    data = conll(folder, holdout=2)
    assert words(data.corpus("dev")) == [["Rome"], ["Bo"]]
    assert words(data.corpus("train")) == [["Anna", "Bo", "slept"]]
    assert data.corpus("dev").columns["label"] == ["B-LOC", "B-PER"]
    assert data.corpus("dev").where(0).endswith("a.txt:7")
    assert not data.has("test")


@pytest.mark.parametrize("first", ["train", "dev"])
def test_holdout_of_documents(folder, first):
    data = conll(folder, unit="document", holdout=1)
    assert data.has(first)
    train, dev = data.corpus("train"), data.corpus("dev")
    assert (words(train), words(dev)) == ([["Anna", "Bo", "slept"], ["Rome"]], [["Bo"]])
    assert (train.lengths.tolist(), dev.lengths.tolist()) == ([4], [1])
    assert (train.documents.tolist(), dev.documents.tolist()) == ([0], [1])


def test_holdout_partitions_the_data(folder):
    whole = Synthetic(train=9, dev=0, test=1, unit="document").corpus("train")
    data = Synthetic(train=9, dev=0, test=1, unit="document", holdout=4)
    parts = [data.corpus("train"), data.corpus("dev")]
    assert [len(part) for part in parts] == [5, 4]
    joined = Corpus.concat(parts)
    assert joined.columns == whole.columns
    assert joined.starts.tolist() == whole.starts.tolist()
    assert joined.sentences.tolist() == whole.sentences.tolist()


@pytest.mark.parametrize(("unit", "size"), [("sentence", 3), ("document", 2)])
def test_holding_out_everything(folder, unit, size):
    data = conll(folder, unit=unit, holdout=size)
    with pytest.raises(InputError, match=f"data.holdout .*{size}.*a.txt .*{size}"):
        data.corpus("train")


def test_a_share_is_drawn_by_the_seed(tmp_path, caplog):
    kinds = [*["PER", "LOC"] * 50, "ORG"]
    text = "".join(f"{i} B-{kind}\n\n" for i, kind in enumerate(kinds))
    (tmp_path / "a.txt").write_text(text)

    def drawn(**options):
        data = Conll(str(tmp_path), {"train": "a.txt"}, ["word", "label"], holdout=0.1, **options)
        train, dev = data.corpus("train"), data.corpus("dev")
        assert sorted(map(int, [*train.columns["word"], *dev.columns["word"]])) == list(range(101))
        assert len(dev) == 10
        assert "B-ORG" not in dev.columns["label"]
        data.label_set().encode(dev.columns["label"])
        return list(dev.columns["word"]), dev

    with caplog.at_level("INFO"):
        words, dev = drawn()
    assert "10 of 101 sequences" in caplog.text
    assert words == drawn(seed=7)[0] != drawn(holdout_seed=2)[0]
    assert words == sorted(words, key=int) != [str(i) for i in range(91, 101)]
    assert dev.where(0).endswith(f":{2 * int(words[0]) + 1}")


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_documents_are_drawn_as_wholes(tmp_path, unit):
    sizes = [3, 1, 2, 4, 2] * 4
    documents = ["-DOCSTART- O\n\n" + f"{i} B-PER\nx O\n\n" * size for i, size in enumerate(sizes)]
    (tmp_path / "a.txt").write_text("".join(documents))
    data = Conll(str(tmp_path), {"train": "a.txt"}, ["word", "label"], unit=unit, holdout=0.2)
    train, dev = (data.corpus(split).columns["word"] for split in ("train", "dev"))
    assert not set(train) - {"x"} & set(dev)
    assert 0 < len(dev) <= 0.25 * (len(train) + len(dev))


@pytest.mark.parametrize(
    ("text", "message"),
    [("Anna B-PER\n", "cannot hold out"), ("Anna B-PER\n\nRome B-LOC\n", "cannot hold out .*a.txt")],
)
def test_nothing_can_be_drawn(tmp_path, text, message):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        Conll(str(tmp_path), {"train": "a.txt"}, ["word", "label"], holdout=0.1).corpus("train")


def test_holding_out_beside_a_dev_split(folder):
    data = Conll(path=str(folder), files={"train": "a.txt", "dev": "a.txt"}, columns=["word", "label"], holdout=1)
    for split in ("train", "dev"):
        with pytest.raises(InputError, match=r"data\.holdout .*dev"):
            data.has(split)


@pytest.mark.parametrize("holdout", [2.5, -1])
def test_impossible_holdouts(folder, holdout):
    with pytest.raises(InputError, match=rf"data\.holdout .*{holdout}"):
        conll(folder, holdout=holdout)


def test_splits_of_the_embedded_corpus():
    data = Synthetic(train=3, dev=2, test=0, unit="document")
    assert [data.has(split) for split in ("train", "dev", "test")] == [True, True, False]
    assert [len(data.corpus(split)) for split in ("train", "dev")] == [3, 2]
