"""Majorities of the other mentions of segments, against a count over all pairs of segments."""

from collections import Counter

import numpy as np
import pytest
import torch

from structperc import Corpus, FeatureExtractor, Tagger, load
from structperc.chain import KBest
from structperc.criteria import HingeLoss
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.features import CaseElsewhere
from structperc.features.segment_mentions import MentionMajority
from structperc.models import Model
from structperc.optim import Perceptron
from structperc.reranking import FirstLabels, JackKnife
from structperc.scorers import SegmentFeatures, SegmentLinear, SparseLinear
from tests.tiny import Sentences, sentences

D = 3
LABELS = ["O", "O", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]


def random_corpus(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 14)
    rows = [
        {"word": rng.choice(["a", "A", "b", "c"], n).tolist(), "first": rng.choice(LABELS, n).tolist()} for n in lengths
    ]
    return rows, np.sort(rng.integers(0, 3, len(rows))).tolist()


def value(labels, start, stop):
    inside = [span for span in spans(labels) if span.start < stop and span.end > start]
    if not inside:
        return "O"
    if len(inside) == 1 and inside[0].start <= start and stop <= inside[0].end:
        return inside[0].type if inside[0][1:] == (start, stop) else f"in {inside[0].type}"
    return "parts"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("whole", [False, True], ids=["document", "corpus"])
def test_majorities_of_other_mentions(seed, whole):
    rows, documents = random_corpus(seed)
    texts = [0] * len(rows) if whole else documents
    segments = [
        (
            i,
            start,
            tuple(word.lower() for word in row["word"][start : start + n]),
            value(row["first"], start, start + n),
        )
        for i, row in enumerate(rows)
        for n in range(1, D + 1)
        for start in range(len(row["word"]) - n + 1)
    ]
    expected = {}
    for i, start, words, here in segments:
        same = [own for j, _, other, own in segments if other == words and texts[i] == texts[j]]
        order = list(dict.fromkeys(same))  # equally frequent: the first one, the segment included
        others = Counter(same) - Counter([here])
        expected[i, start, len(words)] = max(order, key=others.__getitem__) if others else ""
    assert {*expected.values()} > {"O", "ORG", "parts", ""}
    corpus = Corpus.from_sentences(rows, documents)
    majority = MentionMajority(corpus, corpus.factorize("first"), np.repeat(texts, corpus.lengths))
    first = corpus.sentences
    for (i, start, length), wanted in expected.items():
        assert majority.values[majority.numbers(length)[first[i] + start]] == wanted


def test_templates_of_mentions_are_read_from_a_column():
    rows, documents = random_corpus(0)
    corpus = Corpus.from_sentences(rows, documents)
    features = SegmentFeatures(["first[document]|length", "first[corpus]"], D, cutoff=1)
    assert features.extent == "corpus"
    features.build_vocabulary(corpus)
    wanted, numbers = Counter(), Counter()
    for kind, texts in (("document", documents), ("corpus", [0] * len(rows))):
        majority = MentionMajority(corpus, corpus.factorize("first"), np.repeat(texts, corpus.lengths))
        for length in range(1, D + 1):
            for number in majority.numbers(length):
                if found := majority.values[number]:
                    wanted[f"first[{kind}]={found}" + (f"|length={length}" if kind == "document" else "")] += 1
    for lists in features.encode_inputs(corpus):
        numbers.update(features.feature_names(lists.ids.tolist()))
    assert numbers == wanted
    wrong = ["O", "X", *["O"] * (corpus.tokens - 2)]
    with pytest.raises(InputError, match=rf"{corpus.where(1)}: .*first\[document\].*'X'"):
        features.encode_inputs(corpus.replace_column("first", wrong))


def tagger(documents, templates):
    tokens = FeatureExtractor(["w[0]", *(f"{name}[0]" for name in documents)], documents=documents, cutoff=1)
    scorer = SegmentLinear(SparseLinear(), SegmentFeatures(templates, D, cutoff=1))
    return Tagger(tokens, scorer, HingeLoss(), KBest(1), Perceptron)


def test_scorers_read_attributes_of_documents(tmp_path):
    own = sentences(12)
    data = Sentences(own)
    made = tagger({"case": CaseElsewhere()}, ["case[first]|case[last]", "length"])
    made.build_vocabulary(data)
    for p in made.parameters():
        torch.nn.init.normal_(p)
    names = made.scorer.segments.feature_names(range(made.scorer.segments.n_features))
    assert any(name.startswith("case[first]=") for name in names)
    made.save(tmp_path / "model")
    text = [[word for word, _ in row] for row in own]
    predictor = load(tmp_path / "model")
    assert type(predictor).__name__ == "SparsePredictor"
    assert predictor.tag(text) == made.tag(text)


def test_two_stages(tmp_path):
    data = Sentences(sentences(12))
    corpus = data.corpus("train")
    first = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), HingeLoss(), KBest(1), Perceptron)
    plan = JackKnife(folds=2, epochs=1, cache=str(tmp_path / "lists"))
    made = tagger({"first": FirstLabels(first, plan)}, ["first[document]", "first[corpus]|length"])
    made.build_vocabulary(data)
    assert made.extent == "corpus"
    known = made.features.documents["first"].transform(corpus, None)  # by models trained without the sentence
    column = Corpus.replace_column(corpus, "first", [known.distinct[i] for i in known.numbers])
    wanted = made.scorer.segments.encode_inputs(column)
    assert all(one.ids.equal(other.ids) for one, other in zip(made.inputs(corpus), wanted, strict=True))
    for p in made.parameters():
        torch.nn.init.normal_(p)
    made.save(tmp_path / "model")
    again = Model.load(tmp_path / "model")
    assert again.tag([["Anna", "met", "Rome"], ["Rome"]]) == made.tag([["Anna", "met", "Rome"], ["Rome"]])
