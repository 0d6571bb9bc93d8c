"""The choice of texts to label: scores by enumeration, similar texts by comparing all pairs, and the command."""

import json
import math
import random

import numpy as np
import pytest
import torch

from structperc.analysis import select
from structperc.analysis.selection import distinct, selection_scores
from structperc.cli.main import main
from structperc.criteria import CRFLoss, PerceptronLoss
from structperc.data import Corpus, LabelSet
from structperc.errors import InputError
from tests.oracle import probabilities, sorted_paths
from tests.tiny import random_tagger

WORDS = [["Anna", "left"], ["Rome"], ["Bo", "met", "Anna"]]


def made(criterion):
    """A tagger with random weights."""
    corpus = Corpus.from_sentences([{"word": words} for words in WORDS])
    return random_tagger(corpus, LabelSet.from_corpus(["B-PER", "B-LOC"], "IOB2"), criterion), corpus


def test_scores_by_enumeration():
    tagger, corpus = made(CRFLoss())
    found = {by: selection_scores(tagger, corpus, by) for by in ("entropy", "margin", "change")}
    for batch in tagger.batches(corpus):
        with torch.no_grad():
            lattice = tagger(batch)
        for b, row in enumerate(batch.rows.tolist()):
            paths = [(p, path) for p, path in probabilities(lattice, b) if p > 0]
            entropy = -sum(p * math.log(p) for p, _ in paths)
            marginals = np.zeros((len(WORDS[row]), 5))
            for p, path in paths:
                marginals[range(len(path)), path] += p
            change = 0.0
            for p, path in paths:
                gradient = -marginals.copy()
                gradient[range(len(path)), path] += 1
                change += p * (gradient**2).sum()
            (first, _), (second, _) = sorted_paths(lattice, b)[:2]
            expected = {"entropy": entropy, "margin": second - first, "change": change}
            for by, score in expected.items():
                assert found[by][row] == pytest.approx(score, abs=1e-4), by


def test_similar_items_by_comparing_all_pairs():
    draw = random.Random(1)
    items = [[draw.choice("abcdefg") for _ in range(draw.randint(1, 6))] for _ in range(60)]
    for limit in (0.0, 0.3, 0.5, 0.7, 1.0):
        chosen = []
        for i, own in enumerate(map(set, items)):
            if all(len(own & set(items[j])) <= limit * len(own | set(items[j])) for j in chosen):
                chosen.append(i)
        assert distinct(items, range(60), 60, limit) == chosen


def test_items_of_several_sequences():
    tagger, corpus = made(CRFLoss())
    scores = selection_scores(tagger, corpus, "entropy")
    found = {one.item: one.score for one in select(tagger, corpus, 3, max_similarity=1, counts=[2, 0, 1])}
    assert found == pytest.approx({0: scores[0] + scores[1], 2: scores[2]})


def test_entropy_needs_probabilities():
    tagger, corpus = made(PerceptronLoss())
    assert select(tagger, corpus, 1, by="margin")
    with pytest.raises(InputError, match="margin"):
        select(tagger, corpus, 1)


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("pool.txt", "Bo met Anna. Rome is old.\n\nBo met Anna.\n"),
        ("pool.conll", "Bo\nmet\nAnna\n.\n\nRome\nis\nold\n.\n\nBo\nmet\nAnna\n.\n"),
        (
            "pool.jsonl",
            '{"text": "Bo met Anna.", "id": 7, "spans": []}\n{"text": "Rome is old. Yes, it was."}\n'
            '{"text": "Bo met Anna."}\n',
        ),
    ],
)
def test_command(name, pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(CRFLoss())[0].save("model")
    (tmp_path / name).write_text(pool)
    (tmp_path / "labelled.conll").write_text("Rome B-LOC\nis O\nold O\n. O\n")
    form = ["--input", "text"] if name == "pool.txt" else []
    assert main(["select", "model", name, "-n", "9", "-o", "out.jsonl", "--labelled", "labelled.conll", *form]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    texts = {row["text"] for row in rows}
    expected = {"pool.txt": {"Bo met Anna."}, "pool.conll": {"Bo met Anna ."}}
    assert texts == expected.get(name, {"Bo met Anna.", "Rome is old. Yes, it was."})
    assert [row["selection_score"] for row in rows] == sorted((row["selection_score"] for row in rows), reverse=True)
    for row in rows:
        assert all(row["text"][span["start"] : span["end"]] == span["text"] for span in row["spans"])
    if name == "pool.jsonl":
        assert 7 in {row.get("id") for row in rows}
