"""Attributes that read documents, against loops over tokens."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.builder import Builder
from structperc.data.corpus import Corpus, factorize
from structperc.errors import InputError
from structperc.features import CaseElsewhere, FeatureExtractor, LineKind, LongestMention, OtherMentions

WORDS = ["Bo", "bo", "BO", "Al", "al", "AL", "Ed", "x", "1", "99", ".", "I"]
sentences = st.lists(st.sampled_from(WORDS), max_size=6)
texts = st.lists(st.lists(sentences, min_size=1, max_size=4), min_size=1, max_size=3)


def corpus_of(documents, unit="document"):
    ids = [number for number, document in enumerate(documents) for _ in document]
    return Corpus.from_sentences([{"word": words} for document in documents for words in document], ids, unit)


def values_of(attribute, corpus):
    """The attribute's value at each token; other attributes are the words as they stand, or down-cased."""

    def lookup(name):
        return factorize([word.lower() if name == "wl" else word for word in corpus.columns["word"]])

    found = attribute.transform(corpus, lookup)
    return [found.distinct[number] for number in found.numbers]


def tokens_of(documents):
    """(document, sentence, place, words of the sentence) of every token."""
    return [
        (d, s, t, words)
        for d, document in enumerate(documents)
        for s, words in enumerate(document)
        for t in range(len(words))
    ]


def others(documents, d, s, t, words):
    """The other tokens of the document with the same word."""
    same = [x for x in tokens_of(documents) if x[0] == d and x[3][x[2]].lower() == words[t].lower()]
    return [x for x in same if x[:3] != (d, s, t)]


def in_capitals(words):
    return not any(w != w.upper() for w in words) and any(len(w) > 1 and w != w.lower() for w in words)


@settings(max_examples=40)
@given(texts, st.integers(-2, 2), st.sampled_from(["document", "sentence"]))
def test_other_mentions(documents, at, unit):
    def expected(d, s, t, words):
        same = [x for x in others(documents, d, s, t, words) if x[3][x[2]][0].isupper()]
        if not words[t][0].isupper() or not same:
            return ""
        stands = [w[i + at].lower() if 0 <= i + at < len(w) else "_B" for _, _, i, w in same]
        counts = Counter(stands)
        return {value for value in counts if counts[value] == max(counts.values())}

    found = values_of(OtherMentions("wl", at), corpus_of(documents, unit))
    for value, token in zip(found, tokens_of(documents), strict=True):
        allowed = expected(*token)
        assert value in allowed if allowed else value == ""


def test_ties_go_to_the_first_value():
    corpus = corpus_of([[["Mr", "Bo"], ["Dr", "Bo"], ["Bo", "ran"]]])
    found = values_of(OtherMentions("w", -1), corpus)
    assert found == ["", "Dr", "", "Mr", "Mr", ""]


@settings(max_examples=40)
@given(texts, st.sampled_from(["here", "first", "last", "before", "after"]))
def test_longest_mention(documents, at):
    def run(d, s, t, words):
        if in_capitals(words) or not words[t][0].isupper():
            return 0, 0
        start, stop = t, t + 1
        while start > 0 and words[start - 1][0].isupper():
            start -= 1
        while stop < len(words) and words[stop][0].isupper():
            stop += 1
        return start, stop

    def expected(d, s, t, words):
        runs = [(x, run(*x)) for x in others(documents, d, s, t, words)]
        longest = max((stop - start for _, (start, stop) in runs), default=0)
        if not words[t][0].isupper() or longest < 2:
            return ""
        (_, _, i, w), (start, stop) = next((x, r) for x, r in runs if r[1] - r[0] == longest)
        place = {"here": i, "first": start, "last": stop - 1, "before": start - 1, "after": stop}[at]
        return w[place] if 0 <= place < len(w) else "_B"

    found = values_of(LongestMention("w", at), corpus_of(documents))
    assert found == [expected(*token) for token in tokens_of(documents)]


@settings(max_examples=40)
@given(texts)
def test_case_elsewhere(documents):
    def form(d, s, t, words):
        if in_capitals(words):
            return "capitals"
        return "first" if t == 0 else "upper" if words[t][0].isupper() else "lower"

    def expected(d, s, t, words):
        forms = {form(*x) for x in others(documents, d, s, t, words)} if words[t][0].isalpha() else set()
        inside = [f for f in ("upper", "lower") if f in forms]
        return "+".join(inside) or next((f for f in ("first", "capitals") if f in forms), "")

    found = values_of(CaseElsewhere(), corpus_of(documents))
    assert found == [expected(*token) for token in tokens_of(documents)]


@settings(max_examples=40)
@given(texts)
def test_line_kind(documents):
    def expected(d, s, t, words):
        kind = "capitals" if in_capitals(words) else "text" if words[-1] == "." else "line"
        digits = sum(any(map(str.isdigit, w)) for w in words)
        return kind + "+numbers" * (3 * digits >= len(words)) + "+short" * (len(words) <= 3)

    found = values_of(LineKind(), corpus_of(documents))
    assert found == [expected(*token) for token in tokens_of(documents)]


DOCUMENTS = {"full": LongestMention("wl", "first"), "beside": OtherMentions("full", -1), "case": CaseElsewhere()}
TEXT = [[["Mr", "Al", "Bo", "ran", "."], ["Then", "Bo", "sat", "."], ["bo", "is", "no", "name"]]]


def test_templates_read_documents():
    corpus = corpus_of(TEXT, "sentence")
    features = FeatureExtractor(
        ["full[0]", "p1(full)[-1]|w[0]", "case[0]"],
        cutoff=1,
        documents={"full": DOCUMENTS["full"], "case": DOCUMENTS["case"]},
    )
    names = [features.index.names("node")[i] for i in features.fit_encode(corpus).nodes.ids]
    assert "full[0]=mr" in names
    assert "p1(full)[-1]=m|w[0]=sat" in names
    assert "case[0]=upper" in names


def test_attributes_of_documents_are_saved():
    corpus = corpus_of(TEXT, "sentence")
    features = FeatureExtractor(["beside[0]|w[1]", "case[0]"], cutoff=1, documents=DOCUMENTS, within="sentence")
    features.fit(corpus)
    again = FeatureExtractor.from_state(features.state_dict_json(), features.state_arrays(), Builder())
    assert again.within == "sentence"
    assert again.index.names("node") == features.index.names("node")
    assert (again.encode(corpus).nodes.ids == features.encode(corpus).nodes.ids).all()


def test_neighbours_within_the_sentence():
    document, sentence = corpus_of(TEXT), corpus_of(TEXT, "sentence")
    features = FeatureExtractor(["w[-1]|w[0]", "w[2]"], cutoff=1, within="sentence")
    features.fit(document)
    own = FeatureExtractor(["w[-1]|w[0]", "w[2]"], cutoff=1)
    own.fit(sentence)
    assert features.index.names("node") == own.index.names("node")
    found = features.encode(document)
    assert (found.nodes.ids == own.encode(sentence).nodes.ids).all()
    assert (found.cut([0])[0].ids == found.nodes.ids).all()  # the document is still one sequence


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"documents": {"a": OtherMentions("b"), "b": OtherMentions("a")}}, "documents: a reads b reads a"),
        ({"documents": {"a": OtherMentions("w"), "b": CaseElsewhere()}}, "no template uses 'b'"),
        ({"documents": {"wl": CaseElsewhere()}}, "name of a surface attribute"),
        ({"node": ["what(w)[0]"]}, "'what'"),
        ({"within": "line"}, "within "),
    ],
)
def test_bad_options_are_one_line(options, message):
    with pytest.raises(InputError, match=message):
        FeatureExtractor(**{"node": ["a[0]"], **options})


def test_unknown_place():
    with pytest.raises(InputError, match="at "):
        LongestMention("w", "middle")


@pytest.mark.parametrize("attribute", [OtherMentions("w"), LongestMention("w", "first"), CaseElsewhere(), LineKind()])
def test_a_corpus_without_tokens(attribute):
    assert values_of(attribute, corpus_of([[[]]])) == []
