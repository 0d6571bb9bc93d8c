"""structperc candidates: each line of its table against decoding with that n', and against plain Python."""

import csv
import math
from functools import partial

import pytest
import torch

from structperc.analysis import nbest
from structperc.analysis.nbest import nbest_scores
from structperc.chain import KBest, kbest
from structperc.criteria import PerceptronLoss
from structperc.data.conll import write_conll
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules import encoded as parts
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import SegmentF1
from structperc.nonlocal_features import ConjunctionConsistency, PhraseConsistency
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.analysis.trained import documents, trained
from tests.rerankers import segments

SIZES = [1, 2, 7, 30]


@pytest.fixture(scope="module")
def tagger():
    made = trained([PhraseConsistency(), ConjunctionConsistency()], seed=3)
    with torch.no_grad():
        for feature in made.nonlocal_features:
            feature.weight.copy_(3.3 * torch.randn_like(feature.weight))
    return made


@pytest.fixture(scope="module")
def local():
    return trained([], seed=3)


@pytest.fixture(scope="module")
def dev():
    return documents(1, 9, seed=3)


class ByHand:
    """The lists of each sequence as label names, searched alone, and what the table should say about n of them."""

    def __init__(self, tagger, corpus, n):
        self.lists = []
        for batch in tagger.batches(corpus, batch_size=1):
            with torch.no_grad():
                found = kbest(tagger(batch), n)
                total_scores = found.scores + tagger.candidate_scorer.nonlocal_scores(batch, found.labels, found.valid)
            names = [tuple(tagger.labels.decode(path)) for path in found.labels[0, found.valid[0]]]
            start, end = corpus.starts[int(batch.rows)], corpus.starts[int(batch.rows) + 1]
            boundaries = [int(b - start) for b in corpus.sentences if start <= b <= end]
            self.lists.append((tuple(corpus.columns["label"][start:end]), names, total_scores[0].tolist(), boundaries))

    def gold_in_list(self):
        return sum(gold in names for gold, names, _, _ in self.lists) / len(self.lists)

    def gold_place(self):
        places = [names.index(gold) + 1 for gold, names, _, _ in self.lists if gold in names]
        return sum(places) / len(places) if places else math.nan

    def chosen_place(self):
        return sum(total_scores.index(max(total_scores)) + 1 for _, _, total_scores, _ in self.lists) / len(self.lists)

    def oracle(self):
        """(correct, found, gold) of the labellings of highest F1, then of fewest segments, then of lowest place."""
        sums = [0, 0, 0]
        for gold, names, _, boundaries in self.lists:
            wanted = segments(gold, boundaries)
            counts = [
                (len(wanted & own), len(own), len(wanted)) for own in (segments(one, boundaries) for one in names)
            ]
            best = max(counts, key=lambda c: (2 * c[0] / max(c[1] + c[2], 1), -c[1]))
            sums = [a + b for a, b in zip(sums, best, strict=True)]
        return tuple(sums)


def decoded(tagger, corpus, n):
    """Scores of decoding with KBest(n), as `structperc test` has them."""
    tagger.decoder = KBest(n)
    metric = SegmentF1(tagger.labels)
    for batch in tagger.batches(corpus):
        metric.update(tagger.decode(batch), batch.gold, batch.lengths, batch.sentences)
    return metric.compute()


def test_every_number_by_hand(tagger):
    corpus = documents(1, 9, seed=3)
    lists = nbest_scores(tagger, corpus, [*SIZES, 100])
    assert [row.n for row in lists.rows] == [*SIZES, 100]
    assert lists.sequences == len(corpus)
    for row in lists.rows:
        assert row.chosen == decoded(tagger, corpus, row.n)
        hand = ByHand(tagger, corpus, row.n)
        assert tuple(row.oracle.total) == hand.oracle()
        assert row.gold_in_list == hand.gold_in_list()
        assert row.gold_place == pytest.approx(hand.gold_place(), nan_ok=True)
        assert row.chosen_place == pytest.approx(hand.chosen_place())
    assert lists.rows[0].gold_in_list < lists.rows[-1].gold_in_list
    assert lists.rows[-1].gold_place > 1
    assert lists.rows[-1].chosen_place > 1


@pytest.mark.parametrize(("places", "compared"), [(1, 1), (1000, 300)])
def test_parts_change_nothing(tagger, dev, monkeypatch, places, compared):
    wanted = nbest_scores(tagger, dev, SIZES).rows
    monkeypatch.setattr(parts, "MAX_PLACES", places)
    monkeypatch.setattr(nbest, "ORACLE_BATCH", compared)
    assert nbest_scores(tagger, dev, SIZES).rows == wanted


def test_more_candidates_than_paths(tagger):
    words = [["police"], ["Anna", "waits"]]
    corpus = Corpus.from_sentences([{"word": w, "pos": w, "label": ["O"] * len(w)} for w in words])
    every = max(len(found) for found in tagger.kbest(corpus, 10_000))
    assert every < 100
    few, many = nbest_scores(tagger, corpus, [every, 5000]).rows
    assert few[1:] == many[1:]
    assert many.gold_in_list == 1
    for row in (few, many):
        assert row.chosen == decoded(tagger, corpus, row.n)
        hand = ByHand(tagger, corpus, row.n)
        assert (row.gold_place, row.chosen_place) == (hand.gold_place(), hand.chosen_place())


def test_without_nonlocal_features(local, dev):
    rows = nbest_scores(local, dev, SIZES).rows
    assert len({row.chosen.total for row in rows}) == 1
    assert [row.chosen_place for row in rows] == [1] * len(rows)
    assert rows[0].chosen == decoded(local, dev, 1)


def test_seconds_are_parts_of_the_whole(tagger, dev):
    search, scores, total = nbest_scores(tagger, dev, [5]).seconds
    assert search > 0
    assert scores > 0
    assert search + scores < total


@pytest.mark.parametrize("sizes", [[0], [5, -1], []])
def test_bad_sizes(tagger, dev, sizes):
    with pytest.raises(InputError, match="lengths of candidate"):
        nbest_scores(tagger, dev, sizes)


def test_corpus_without_gold(tagger, dev):
    columns = {role: values for role, values in dev.columns.items() if role != "label"}
    with pytest.raises(InputError, match="gold"):
        nbest_scores(tagger, Corpus(columns, dev.starts, dev.sentences, dev.documents), [1])


def test_labels_without_segments(dev):
    features = FeatureExtractor(["w[0]"])
    features.fit(dev)
    tagger = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1))
    tagger.allocate(LabelSet(("NN", "VB"), "none"))
    with pytest.raises(InputError, match="segments"):
        nbest_scores(tagger, dev, [1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_same_on_cuda(tagger, dev):
    wanted = nbest_scores(tagger, dev, SIZES).rows
    try:
        assert nbest_scores(tagger.cuda(), dev, SIZES).rows == wanted
    finally:
        tagger.cpu()


@pytest.fixture
def model(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def file(dev, tmp_path):
    write_conll(tmp_path / "dev.txt", dev)
    return str(tmp_path / "dev.txt")


@pytest.fixture
def run(run):
    return partial(run, "evaluate")


@pytest.fixture
def fails(fails):
    return partial(fails, "evaluate")


def cells(row):
    shares = (row.chosen.f1, row.chosen.precision, row.chosen.recall, row.oracle.f1, row.gold_in_list)
    return [row.n, *(100 * share for share in shares), row.gold_place, row.chosen_place]


def test_table(run, model, file, tagger, dev):
    _, *found, seconds = run(model, file, "--candidates", 1, 7, 30).splitlines()
    assert seconds.startswith("seconds")
    for row, wanted in zip(found, nbest_scores(tagger, dev, [1, 7, 30]).rows, strict=True):
        assert [float(cell) for cell in row.split()] == pytest.approx(cells(wanted), abs=0.051, nan_ok=True)


def test_csv_and_plot(run, model, file, tagger, dev, tmp_path):
    run(model, file, "--candidates", 1, 7, "--csv", tmp_path / "n.csv", "--plot", tmp_path / "n.png")
    with open(tmp_path / "n.csv", newline="", encoding="utf-8") as lines:
        head, *rows = csv.reader(lines)
    assert head[:2] == ["n", "f1"]
    for row, wanted in zip(rows, nbest_scores(tagger, dev, [1, 7]).rows, strict=True):
        n, *shares = map(float, row)
        places = [wanted.gold_place, wanted.chosen_place]
        assert n == wanted.n
        assert shares == pytest.approx([x / 100 for x in cells(wanted)[1:6]] + places, nan_ok=True)
    assert (tmp_path / "n.png").read_bytes().startswith(b"\x89PNG")


def test_bad_input(fails, model, file, tmp_path):
    assert "lengths of candidate" in fails(model, file, "--candidates", 0)
    assert "'label'" in fails(model, file, "--columns", "word", "pos")
    assert "nowhere" in fails(model, file, "--plot", tmp_path / "nowhere" / "n.png")
    assert ".xyz" in fails(model, file, "--plot", tmp_path / "n.xyz")


def test_unknown_labels_are_missed(tagger, dev):
    """They are as wrong as labels of a type that is known and nowhere predicted."""
    known = dev.replace_column("label", ["O" if "LOC" in label else label for label in dev.columns["label"]])
    other = dev.replace_column("label", [label.replace("LOC", "ANIMAL") for label in dev.columns["label"]])
    assert known.columns["label"] != other.columns["label"]
    n_animals = sum(label == "B-ANIMAL" for label in other.columns["label"])
    for without, with_animals in zip(
        nbest_scores(tagger, known, [1, 7]).rows, nbest_scores(tagger, other, [1, 7]).rows, strict=True
    ):
        assert with_animals.chosen.types["ANIMAL"] == (0, 0, n_animals)
        assert with_animals.chosen.total.correct == without.chosen.total.correct
        assert with_animals.chosen.total.gold == without.chosen.total.gold + n_animals
        assert with_animals.oracle.types["ANIMAL"] == (0, 0, n_animals)
        assert with_animals.gold_in_list <= without.gold_in_list


def test_documents_without_marks(fails, run, model, dev, tmp_path):
    alone = Corpus(dev.columns, dev.sentences, dev.sentences, torch.arange(len(dev.sentences) - 1).numpy())
    write_conll(tmp_path / "plain.txt", alone)
    assert "--unit sentence" in fails(model, tmp_path / "plain.txt")
    assert run(model, tmp_path / "plain.txt", "--unit", "sentence", "--candidates", 2)
