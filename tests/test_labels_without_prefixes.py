"""The scheme IO, labels without prefixes, against run lengths: conversion, readers, metrics, heads, taggers, files."""

import json
import re
from itertools import groupby, product

import pytest
import torch

import structperc
from structperc.chain.minimum_risk import check_segment_labels
from structperc.criteria import SegmentCosts
from structperc.data import Corpus, LabelSet
from structperc.data.conversion import read_annotated
from structperc.data.label_sets import convert_label_sets
from structperc.data.labels import segment_boundaries
from structperc.data.normalise import count_segments, normalise_labels, rename_types
from structperc.data.read_options import ReadOptions
from structperc.data.scheme_detection import NO_OUTSIDE, detect_scheme, fit_io, fit_scheme, to_scheme
from structperc.data.survey import inspect_file
from structperc.data.tag_schemes import PREFIX_SCHEMES, convert, first_violation, parse_notation, repair, spans
from structperc.errors import InputError
from structperc.metrics import segment_f1_score
from structperc.metrics.counts import segment_counts
from structperc.nn import ChainHead, SegmentHead, decode_tokens
from structperc.sklearn import SequenceTagger
from tests.errors import error_message
from tests.oracle import label_sequences

NAMES = ("O", "A", "b-c")
SEQUENCES = [list(labels) for length in range(5) for labels in label_sequences(length, NAMES)]
LABELS = LabelSet.from_corpus(NAMES, "IO")


def naive(labels):
    """Run lengths of all labels but O."""
    found, start = [], 0
    for label, run in groupby(labels):
        end = start + len(list(run))
        if label != "O":
            found.append((label, start, end))
        start = end
    return found


@pytest.mark.parametrize("other", [*PREFIX_SCHEMES, "IOB2 TYPE_b O", "IO TYPE 0"])
def test_all_label_sequences_in_another_scheme(other):
    for labels in SEQUENCES:
        there = convert(labels, "IO", other)
        assert spans(labels, "IO") == spans(there, other) == naive(labels)
        assert convert(there, other, "IO") == labels
        assert first_violation(labels, "IO") is None
        assert repair(labels, "IO") == (labels, 0)


def test_names_of_the_notation():
    assert [parse_notation(name).name for name in ("IO", "IO TYPE", "IO TYPE 0")] == ["IO", "IO", "IO TYPE 0"]
    assert "IO B-TYPE" in error_message(parse_notation, "IO B-TYPE")
    assert convert(["B", "I", "O", "B"], "IOB2", "IO") == ["I", "I", "O", "I"]
    assert convert(["I", "I", "O", "I"], "IO", "IOB2") == ["B", "I", "O", "B"]


def test_masks_and_boundaries():
    assert LABELS.names == ("O", "A", "b-c")
    assert all(mask.all() for mask in LABELS.allowed)
    for labels in filter(None, SEQUENCES):
        ids = torch.from_numpy(LABELS.encode(labels))[None]
        real, starts = torch.ones_like(ids).bool(), torch.arange(len(labels))[None] == 0
        first, last = (mask[0].nonzero()[:, 0].tolist() for mask in segment_boundaries(ids, real, starts, LABELS))
        assert [(labels[a], a, b + 1) for a, b in zip(first, last, strict=True)] == naive(labels)


def test_counts_and_scores():
    pairs = [(gold, found) for gold, found in product(SEQUENCES, SEQUENCES) if len(gold) == len(found) == 3]
    gold, found = (torch.tensor([LABELS.encode(one).tolist() for one in part]) for part in zip(*pairs, strict=True))
    counts = segment_counts(found, gold, torch.full((len(pairs),), 3), LABELS)
    wanted = [len({*naive(a)} & {*naive(b)}) for a, b in pairs]
    assert counts.correct.sum(1).tolist() == wanted
    assert not counts.improper.any()
    total = 2 * sum(wanted) / sum(len(naive(a)) + len(naive(b)) for a, b in pairs)
    for mode in (None, "strict"):
        own = segment_f1_score([a for a, _ in pairs], [b for _, b in pairs], scheme="IO", mode=mode)
        assert own == pytest.approx(total)
    assert "scheme='IO'" in error_message(segment_f1_score, [["A"]], [["A"]])


def test_sets_of_labels():
    assert convert_label_sets(["A|C", "A", "?"], "IO", "IOB2") == ["B-A|B-C", "B-A|I-A", "!B-A|I-C"]
    assert convert_label_sets(["B-A", "I-A|O", "!B-A"], "IOB2", "IO") == ["A", "A|O", "?"]
    assert convert_label_sets(["A|O", "!A"], "IO", "IO") == ["A|O", "!A"]


# -- loss of adjacent segments ----------------------------------------------------------------------------------


def test_joined_segments_are_reported_once(tmp_path, caplog):
    rows = [{"word": ["x"] * 4, "label": ["B-A", "B-A", "I-A", "B-C"]}, {"word": ["x"] * 2, "label": ["B-C", "B-C"]}]
    corpus, repaired = normalise_labels(Corpus.from_sentences(rows, name="a.txt"), "IOB2", "IO")
    assert (corpus.columns["label"], repaired) == (["A", "A", "A", "C", "C", "C"], 0)
    assert count_segments(corpus, "IO") == 3
    (message,) = caplog.messages
    assert message.startswith("a.txt: 2 segments joined")
    assert rename_types(corpus, "IO", {"C": "A"}).columns["label"] == ["A"] * 6
    assert caplog.messages[1].startswith("a.txt: 1 segment joined")
    assert to_scheme([["B-A", "B-A"]], "gold", "IO", "IOB2") == [["A", "A"]]
    assert len(caplog.messages) == 3
    row = {"text": "Anna Bo left", "spans": [[0, 4, "PER"], [5, 7, "PER"]]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    data = structperc.data.Table(str(tmp_path), {"train": "a.jsonl"}, {"text": "text", "spans": "spans"}, scheme="IO")
    assert data.corpus("train").columns["label"] == ["PER", "PER", "O"]
    assert sum("1 segment joined" in one for one in caplog.messages[3:]) == 1


# -- detection --------------------------------------------------------------------------------------------------

POS = [["DT", "NN", "NN", "VB", "O"], ["DT", "NN", "VB"]]


@pytest.mark.parametrize(
    ("sentences", "proposed"),
    [
        ([["PER", "PER", "O", "PER", "O", "LOC", "LOC", "O"], ["LOC", "ORG", "ORG", "O", "O"]], True),
        (POS, False),
        ([["O", "COMMA", "O", "O", "PERIOD", "O", "COMMA", "O"]], False),  # no runs
        ([["PER", "PER", "PER", "O"]], False),  # O is not the most frequent label
        ([["PER", "PER", "_", "_", "_"]], False),  # no O
    ],
)
def test_only_init_proposes_the_scheme(sentences, proposed):
    assert (fit_io(sentences) is not None) == proposed
    assert (fit_scheme(sentences).scheme, detect_scheme(sentences)) == ("none", "none")


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["B-A", "I-A", "O", "S-C", "B-C", "I-C", "O"], "IOBES"),
        (["B-A", "I-A", "O", "U-C", "B-C", "I-C", "O"], "BILOU"),
        (["b_A", "i_A", "o", "s_C", "b_C", "i_C", "o"], "IOBES b_TYPE"),
    ],
)
def test_prefixes_of_several_schemes(labels, scheme):
    found = fit_scheme([labels])
    assert (found.scheme, found.unrecognized) == (scheme, {})
    assert spans(labels, scheme) == [("A", 0, 2), ("C", 3, 4), ("C", 4, 6)]
    few = fit_scheme([labels[:3] + labels[4:]] * 100 + [labels])
    assert few.unrecognized == {labels[3]: 1}


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("Anna PER\nLind PER\nmet O\nBo PER\nin O\nOslo LOC\n. O\n\nUno LOC\nUno LOC\n. O\n")
    found = inspect_file(str(tmp_path / "a.txt"))
    assert (found.scheme, found.illegal) == ("IO", [])
    assert found.types()[0] == {"PER": 2, "LOC": 2}
    assert any("--labels none" in one for one in found.remarks())
    first, _ = read_annotated(str(tmp_path / "a.txt"))
    assert first.labels == ["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "O"]
    wrong = found.corpus.replace_column("label", convert(found.corpus.columns["label"], "IO", "IOB2"))
    assert "'B-PER'" in error_message(normalise_labels, wrong, "IO", "IOB2")


def test_a_file_without_outside_label(tmp_path, caplog):
    (tmp_path / "a.txt").write_text("the DT\ndog NN\ncat NN\n")
    found = inspect_file(str(tmp_path / "a.txt"), ReadOptions(labels="IO"))
    data = structperc.data.Conll(str(tmp_path), {"train": "a.txt"}, ["word", "label"], labels="IO")
    assert data.corpus("train").columns["label"] == ["B-DT", "B-NN", "I-NN"]
    assert any(NO_OUTSIDE in one for one in caplog.messages)
    assert NO_OUTSIDE in [*found.remarks()]


# -- models -----------------------------------------------------------------------------------------------------


def test_chain_head_by_enumeration():
    head, T = ChainHead(NAMES, scheme="IO"), 4
    torch.manual_seed(1)
    with torch.no_grad():
        for part in (head.start_transitions, head.transitions, head.end_transitions):
            part.normal_()
    logits = torch.randn(1, T, 3)
    sequences = torch.tensor([*product(range(3), repeat=T)])
    steps = logits[0, range(T), sequences].sum(1) + head.transitions[sequences[:, :-1], sequences[:, 1:]].sum(1)
    scores = (steps + head.start_transitions[sequences[:, 0]] + head.end_transitions[sequences[:, -1]]).double()
    shares = scores.softmax(0)
    best = sequences[scores.argmax()]
    assert torch.equal(head.decode(logits)[0], best)
    assert float(head(logits, gold=best[None])) == pytest.approx(-float(shares.max().log()), abs=1e-5)
    read = [naive(LABELS.decode(one)) for one in sequences]
    (found,) = head.entities(logits, min_probability=0.01)
    assert {span[:3] for span in found.spans} >= set(read[int(scores.argmax())])
    for span in found.spans:
        own = sum(float(p) for p, segments in zip(shares, read, strict=True) if span[:3] in segments)
        assert span.probability == pytest.approx(own, abs=1e-5)
    assert "NN" not in error_message(ChainHead, ["NN", "VB"], scheme="IO")
    assert "'B-A'" in error_message(ChainHead, ["O", "B-A", "I-A"], scheme="IO")
    assert "IO" in error_message(ChainHead, ["O", "PER"])


def test_parts_that_need_beginnings_of_segments():
    with pytest.raises(InputError, match="IO"):
        SegmentCosts().allocate(LABELS)
    with pytest.raises(InputError, match="IO"):
        check_segment_labels(LABELS)
    assert "IO" in error_message(SegmentHead, LABELS, 4, max_length=2)


class Words:
    """In place of a tokenizer: a piece for each word."""

    is_fast, padding_side = True, "right"

    def __call__(self, text, **options):
        offsets = [found.span() for found in re.finditer(r"\S+", text)]
        return {"input_ids": [0] * len(offsets), "special_tokens_mask": [0] * len(offsets), "offset_mapping": offsets}


def test_decoding_of_tokens():
    logits = torch.eye(3)[torch.tensor([[1, 1, 0, 2, 1]])] * 9
    (found,) = decode_tokens(logits, Words(), ["a b c d e"], NAMES, scheme="IO")
    assert [(one.start, one.end, one.type) for one in found] == [(0, 3, "A"), (6, 7, "b-c"), (8, 9, "A")]


def test_a_tagger(tmp_path):
    X = [["Anna", "Lind", "left"], ["Oslo", "is", "New", "York"]] * 3
    y = [["PER", "PER", "O"], ["LOC", "O", "LOC", "LOC"]] * 3
    model = SequenceTagger(scheme="IO", max_iterations=20).fit(X, y)
    assert model.score(X, y) == 1.0
    tagger = model.tagger_
    assert [one[:3] for one in tagger.annotate("Anna Lind left")] == [(0, 9, "PER")]
    tagger.save(tmp_path / "model")
    for own in (tagger, structperc.load(tmp_path / "model")):
        spans_of, _ = own.entities(X[1:2])[0]
        assert [(one.type, one.start, one.end) for one in spans_of if one.best] == [("LOC", 0, 1), ("LOC", 2, 4)]
