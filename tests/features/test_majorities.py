"""What most labels of a first model say, against loops over tokens and entities."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.data.corpus import Corpus, factorize
from structperc.errors import InputError
from structperc.features import EntityMajority, SuperentityMajority, TokenMajority

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
tokens = st.tuples(st.sampled_from(["Al", "AL", "Bo", "x"]), st.sampled_from(LABELS))
texts = st.lists(st.lists(st.lists(tokens, max_size=5), min_size=1, max_size=3), min_size=1, max_size=3)
kinds = pytest.mark.parametrize("kind", [TokenMajority, EntityMajority, SuperentityMajority])


def values_of(attribute, documents, unit):
    ids = [number for number, document in enumerate(documents) for _ in document]
    rows = [
        {"word": [w for w, _ in sentence], "first": [x for _, x in sentence]}
        for document in documents
        for sentence in document
    ]
    corpus = Corpus.from_sentences(rows, ids, unit)
    found = attribute.transform(corpus, lambda name: factorize(corpus.columns[name]))
    return [found.distinct[number] for number in found.numbers]


def entities_of(documents, within):
    """(document, words, type, places) of each entity, read off by hand: it ends where a B, an O or another type is."""
    found = []
    for d, document in enumerate(documents):
        for s, sentence in enumerate(document):
            before = "O"
            for t, (word, label) in enumerate(sentence):
                if label != "O" and (label[0] == "B" or before[1:] != label[1:]):
                    found.append((0 if within == "corpus" else d, [], label[2:], []))
                if label != "O":
                    found[-1][1].append(word.lower())
                    found[-1][3].append((d, s, t))
                before = label
    return found


def holds(words, part):
    return len(part) < len(words) and any(words[i : i + len(part)] == part for i in range(len(words)))


def expected(kind, documents, within):
    """The allowed values at each token."""
    everything = [(d, s, t) for d, x in enumerate(documents) for s, y in enumerate(x) for t in range(len(y))]
    allowed = {place: {""} for place in everything}
    votes = {}
    if kind is TokenMajority:
        for place in everything:
            d, s, t = place
            word, _ = documents[d][s][t]
            same = [
                documents[e][r][i][1]
                for e, r, i in everything
                if documents[e][r][i][0].lower() == word.lower() and (within == "corpus" or e == d)
            ]
            votes[place] = Counter(label[2:] or "O" for label in same)
    else:
        entities = entities_of(documents, within)
        agree = list.__eq__ if kind is EntityMajority else holds
        for d, words, _, places in entities:
            types = Counter(type_ for e, other, type_, _ in entities if e == d and agree(other, words))
            votes |= dict.fromkeys(places, types)
    for place, counts in votes.items():
        allowed[place] = {x for x in counts if counts[x] == max(counts.values())} or {""}
    return list(allowed.values())


@kinds
@settings(max_examples=20)
@given(texts, st.sampled_from(["document", "corpus"]), st.sampled_from(["document", "sentence"]))
def test_the_most_frequent_type(kind, documents, within, unit):
    found = values_of(kind("first", within), documents, unit)
    for value, allowed in zip(found, expected(kind, documents, within), strict=True):
        assert value in allowed


@kinds
def test_ties_go_to_the_first_type(kind):
    one, other = [("Al", "B-LOC"), ("Bo", "I-LOC")], [("Al", "B-PER"), ("Bo", "I-PER")]
    document = [one, other, [("Bo", "B-PER")], [("x", "O")], [("Bo", "B-LOC")]]
    found = values_of(kind("first"), [document], "sentence")
    assert found[0] == {TokenMajority: "LOC", EntityMajority: "LOC", SuperentityMajority: ""}[kind]
    assert found[4] == {TokenMajority: "LOC", EntityMajority: "PER", SuperentityMajority: "LOC"}[kind]


@kinds
def test_unknown_extent(kind):
    with pytest.raises(InputError, match=f"{kind.__name__}: within .*document, corpus"):
        kind("first", "sentence")
