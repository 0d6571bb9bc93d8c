"""Dictionaries, forced segments and masks of allowed labels, against an enumeration of all legal label sequences."""

from itertools import product

import numpy as np
import pytest

from structperc import Corpus, LabelSet
from structperc.data import forced_labels, read_lexicon, spans
from structperc.data.possible_labels import first_impossible, with_lexicon
from structperc.data.tag_schemes import Span, first_violation
from structperc.errors import InputError
from structperc.predictor.limits import CorpusLimits, limit_columns, limited_text, with_limits
from structperc.text import tokenize

SETS = {
    scheme: LabelSet.from_corpus(["B-P", "B-L"] if scheme != "IOB1" else ["I-P", "I-L"], scheme)
    for scheme in ("IOB1", "IOB2", "IOBES")
}


def legal_sequences(labels, n):
    return [path for path in product(labels.names, repeat=n) if first_violation(path, labels.scheme) is None]


@pytest.mark.parametrize("scheme", SETS)
@pytest.mark.parametrize(
    "forced", [[Span("P", 1, 3)], [Span("P", 1, 2), Span("P", 2, 3)], [Span("L", 0, 1)], [Span("P", 3, 4)]]
)
def test_forced_segments_allow_exactly_the_sequences_with_them(scheme, forced):
    labels = SETS[scheme]
    allowed = forced_labels(4, forced, labels)
    left = {
        path
        for path in legal_sequences(labels, 4)
        if all(own is None or name in own for name, own in zip(path, allowed, strict=True))
    }
    expected = {path for path in legal_sequences(labels, 4) if set(forced) <= set(spans(path))}
    if scheme == "IOB1":  # no segment of the type touches it on the left unless it is forced
        kind, start, _ = forced[0]
        expected = {path for path in expected if not any(s[::2] == (kind, start) for s in spans(path))}
    assert left == expected
    assert left


@pytest.mark.parametrize("segments", [[Span("P", 2, 5)], [Span("X", 0, 1)], [Span("P", 0, 2), Span("L", 1, 3)]])
def test_invalid_forced_segments(segments):
    with pytest.raises(InputError, match="forced"):
        forced_labels(4, segments, SETS["IOB2"])


@pytest.mark.parametrize("scheme", SETS)
def test_first_impossible_token_by_enumeration(scheme):
    labels, draw, T = SETS[scheme], np.random.default_rng(1), 3
    masks = draw.random((60, T, len(labels))) < 0.2
    steps = np.arange(T)
    for mask in masks:
        found = first_impossible(
            mask[None], np.ones((1, T), bool), steps[None] == 0, steps[None] == T - 1, labels.allowed
        )
        left = [p for p in legal_sequences(labels, T) if mask[steps, labels.encode(p)].all()]
        assert (found is None) == bool(left)


def test_errors_name_the_token():
    corpus = Corpus.from_sentences([{"word": ["He"]}, {"word": ["saw", "Anna"]}])
    labels = SETS["IOB2"]
    for allowed in ([None, [["O"], ["I-P"]]], [None, [None, []]]):
        with pytest.raises(InputError, match=r"sentence 2, token 2.*'Anna'"):
            CorpusLimits.read(with_limits(corpus, allowed, None), labels)
    with pytest.raises(InputError, match=r"sentence 1, token 1.*B-X"):
        CorpusLimits.read(with_limits(corpus, [[["B-X"]], None], None), labels)
    for allowed in ([None], [None, [None]], [None, ["O", None]]):
        with pytest.raises(InputError, match="allowed"):
            with_limits(corpus, allowed, None)


def test_restrictions_are_combined():
    corpus = with_limits(Corpus.from_sentences([{"word": ["Oslo", "Bo"]}]), [[["B-L", "O"], None]], None)
    found = with_lexicon(corpus, {"Oslo": ["B-L", "B-P"]}, SETS["IOB2"])
    assert list(found.columns["possible"]) == ["B-L", "?"]
    with pytest.raises(InputError, match=r"token 1.*'Oslo'"):
        CorpusLimits.read(with_lexicon(corpus, {"Oslo": ["B-P"]}, SETS["IOB2"]), SETS["IOB2"])


@pytest.mark.parametrize("line", ["Oslo B-L", "Oslo\t", "\tB-L", "Oslo\tB-X", 'Oslo\t["B-L"'])
def test_invalid_lines_of_a_lexicon(line, tmp_path):
    file = tmp_path / "lexicon.tsv"
    file.write_text(f"Bo\tB-P|O\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"lexicon\.tsv:2"):
        read_lexicon(file, SETS["IOB2"])


@pytest.mark.parametrize("wrong", ["!O", "?", "B-P|O"])
def test_sets_are_not_names_of_labels(wrong):
    corpus = with_limits(Corpus.from_sentences([{"word": ["Oslo"]}]), [[[wrong]]], None)
    with pytest.raises(InputError, match="unknown label"):
        CorpusLimits.read(corpus, SETS["IOB2"])


def test_labels_with_separators(tmp_path):
    labels = LabelSet(("NN", "VB", "NN|VB", "?"), "none")
    corpus = Corpus.from_sentences([{"word": ["plan", "!"]}])
    corpus = with_limits(corpus, [[["NN|VB", "NN"], ["?"]]], None)
    assert CorpusLimits.read(corpus, labels).masks.astype(int).tolist() == [[1, 0, 1, 0], [0, 0, 0, 1]]
    file = tmp_path / "lexicon.tsv"
    file.write_text('plan\t["NN|VB", "NN"]\nruns\tNN|VB\n')
    assert read_lexicon(file, labels) == {"plan": ["NN|VB", "NN"], "runs": ["NN", "VB"]}
    found = with_lexicon(corpus, {"plan": ["NN|VB", "VB"]}, labels)
    assert CorpusLimits.read(found, labels).masks[0].tolist() == [False, False, True, False]


@pytest.mark.parametrize("wrong", ["B-P", 3, [3]])
def test_labels_of_a_token_that_are_not_a_list_of_names(wrong):
    corpus = Corpus.from_sentences([{"word": ["Oslo"]}])
    with pytest.raises(InputError, match=r"sentence 1: allowed\[0\]"):
        with_limits(corpus, [[wrong]], None)
    with pytest.raises(InputError, match=r"allowed\[0\]"):
        limit_columns(1, SETS["IOB2"], [wrong])


@pytest.mark.parametrize("wrong", [(0, 1, "P"), ("P", 0), ("P", 0.0, 1.0), ("P", 0, 2), (None, 0, 1), 5])
def test_values_that_are_not_spans_of_the_sentence(wrong):
    for limit in ("forced", "forbidden"):
        with pytest.raises(InputError, match=f"^{limit}: "):
            limit_columns(1, SETS["IOB2"], **{limit: [wrong]})


def test_fields_that_are_null_set_no_limits():
    fields = {"allowed": None, "forced": None, "forbidden": None}
    columns = limited_text(tokenize("Oslo"), fields, SETS["IOB2"], "request")[1]
    assert columns == {"possible": ["?"], "forbidden": [""]}
