from collections import Counter, defaultdict

import pytest

from structperc.data.corpus import Corpus
from structperc.data.synthetic import CLASSES, local_f1_bound, synthetic_corpus, synthetic_splits
from structperc.data.tag_schemes import first_violation, spans
from structperc.errors import InputError


@pytest.fixture(scope="module")
def sample():
    """400 documents at ambiguity 0.5 as (document, sentence position, words, span, evidence) of all names."""
    data = synthetic_corpus(seed=3, documents=400)
    found = []
    for row in data:
        for span in spans(row["label"]):
            evidence = set(row["evidence"][span.start : span.end])
            assert len(evidence) == 1
            found.append((row["document"], row["sentence"], row["word"], span, evidence.pop()))
    return data, found


def test_the_same_seed_gives_the_same_corpus():
    one = synthetic_corpus(seed=1, documents=20)
    assert one.to_list() == synthetic_corpus(seed=1, documents=20).to_list()
    assert one.to_list()[:50] == synthetic_corpus(seed=1, documents=40).to_list()[:50]
    assert one.to_list() != synthetic_corpus(seed=2, documents=20).to_list()
    third = one["word"][2]  # the same on every machine and in every version of Python
    assert " ".join(third) == "Police in Kolas closed several roads on Wednesday ."


def test_shape(sample):
    data, _ = sample
    corpus = Corpus.from_dataset(data, "document")
    assert len(corpus) == 400
    assert 70 < corpus.tokens / 400 < 90
    assert list(corpus.columns) == ["word", "pos", "chunk", "label", "evidence"]
    for role in ("label", "chunk"):
        assert all(first_violation(labels, "IOB2") is None for labels in corpus.sentences_of(corpus.columns[role]))
    kinds = {kind for kind, _ in zip(corpus.columns["label"], corpus.columns["word"], strict=True)}
    assert kinds >= {"B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-MISC", "O"}
    outside = [e == "O" for e in corpus.columns["evidence"]]
    assert outside == [label == "O" for label in corpus.columns["label"]]


def test_numbers_of_names_are_as_documented(sample):
    """10 + 4a names in a document, 7a of them undecidable: 12 and 3.5 for a = 0.5, of these 1 in lists."""
    _, found = sample
    evidence = Counter(e for *_, e in found)
    assert len(found) / 400 == pytest.approx(12, abs=0.3)
    assert evidence["document"] / 400 == pytest.approx(2.5, abs=0.2)
    assert evidence["list"] / 400 == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("a", [0.0, 0.3, 0.5, 1.0])
def test_ceiling_of_local_evidence(a):
    data = synthetic_corpus(seed=5, documents=400, ambiguity=a)
    assert local_f1_bound(data) == pytest.approx(1 - 2 / 3 * 7 * a / (10 + 4 * a), abs=0.01)


def test_classes_of_ambiguous_names(sample):
    _, found = sample
    by_context = defaultdict(Counter)
    for _, _, words, span, evidence in found:
        if evidence != "local":
            assert span.end == span.start + 1
            near = [*words[max(span.start - 2, 0) : span.start], "_", *words[span.end : span.end + 2]]
            by_context["all"][span.type] += 1
            if evidence == "document":
                by_context[" ".join(near[:-1])][span.type] += 1
    assert set(by_context["all"]) == set(CLASSES)
    for context, counts in by_context.items():
        total = sum(counts.values())
        if total >= 60:  # four standard deviations
            spread = 4 * (2 / 9 / total) ** 0.5
            assert all(abs(counts[kind] / total - 1 / 3) < spread for kind in CLASSES), (context, counts)
    assert sum(sum(c.values()) >= 60 for c in by_context.values()) > 5


def test_one_class_per_document(sample):
    _, found = sample
    here, everywhere = defaultdict(set), defaultdict(set)
    for document, _, words, span, _ in found:
        name = " ".join(words[span.start : span.end]).lower()
        here[document, name].add(span.type)
        everywhere[name].add(span.type)
    assert all(len(kinds) == 1 for kinds in here.values())
    assert sum(len(kinds) > 1 for kinds in everywhere.values()) > 80


def test_ambiguous_names_depend_on_the_document(sample):
    """Same name, or a longer one around it, clear elsewhere in the document; a list by its first name."""
    _, found = sample
    clear, first_of_list = defaultdict(set), {}
    for document, sentence, words, span, evidence in found:
        if evidence == "local":
            first_of_list.setdefault(sentence, span.type)
            clear[document] |= {(word.lower(), span.type) for word in words[span.start : span.end]}
    for document, sentence, words, span, evidence in found:
        if evidence == "document":
            assert (words[span.start].lower(), span.type) in clear[document]
        elif evidence == "list":
            assert first_of_list[sentence] == span.type


def test_headlines_lists_and_longer_names(sample):
    data, found = sample
    first = {row["document"]: row["word"] for row in reversed(list(data))}
    assert all(" ".join(words).isupper() for words in first.values())
    assert any(words[span.start].isupper() and e == "document" for _, _, words, span, e in found)
    assert any(words[span.end - 1] == "Corp." for *_, words, span, _ in found)


def test_splits_share_a_part_of_their_names():
    splits = synthetic_splits(seed=0, train=200, dev=100, test=100, unseen=0.3)
    assert list(splits) == ["train", "dev", "test"]
    names = {}
    for split, data in splits.items():
        columns = Corpus.from_dataset(data).columns
        bare = zip(columns["word"], columns["label"], columns["evidence"], strict=True)
        names[split] = Counter(w.lower() for w, label, e in bare if e != "local" and label != "O")
    for split in ("dev", "test"):
        unseen = sum(n for name, n in names[split].items() if name not in names["train"])
        assert unseen / names[split].total() == pytest.approx(0.3, abs=0.1)
    apart = synthetic_splits(train=20, dev=20, test=20, unseen=1.0)
    words = [set(Corpus.from_dataset(data).columns["word"]) for data in apart.values()]
    stems = [{w for w in vocabulary if w.endswith(("ville", "burg", "stead"))} for vocabulary in words]
    assert all(stems)
    assert not stems[0] & stems[1] | stems[0] & stems[2] | stems[1] & stems[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ambiguity": 1.5}, "ambiguity "),
        ({"unseen": -0.1}, "unseen "),
        ({"inventory": 100}, "inventory "),
        ({"documents": 0}, "documents "),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        synthetic_corpus(**options)
