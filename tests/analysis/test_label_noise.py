"""Label noise: folds whose segments training does not contain, and the rank of a wrong label."""

import pytest

from structperc import Corpus
from structperc.analysis import label_noise, noise_lines, noise_rows
from structperc.data import Span
from structperc.errors import InputError
from structperc.reranking.jackknife import JackKnife, TrainingPart
from structperc.sklearn import SequenceTagger

WORDS = [["Anna", "left"], ["in", "Oslo"], ["Bo", "left"], ["in", "Oslo"], ["in", "Rome"], ["she", "left"]]
CLEAN = [["B-PER", "O"], ["O", "B-LOC"], ["B-PER", "O"], ["O", "B-LOC"], ["O", "B-LOC"], ["O", "O"]]
NOISY = [*CLEAN[:3], ["O", "B-PER"], *CLEAN[4:]]


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(max_iterations=10).fit(WORDS, CLEAN).tagger_


def data_of(labels, **options):
    sentences = [{"word": words, "label": own} for words, own in zip(WORDS, labels, strict=True)]
    return TrainingPart(Corpus.from_sentences(sentences), scheme="IOB2", **options)


class Plan(JackKnife):
    """A plan that returns a fixed tagger and keeps the words of the parts."""

    def train(self, first, data, corpus, fold, **options):
        self.parts.append(set(corpus.columns["word"]))
        return first


def test_a_wrong_label_comes_first(tagger):
    plan = Plan(folds=3)
    plan.parts = []
    found = label_noise(tagger, data_of(NOISY), plan, rounds=2)
    assert (found[0].pair, found[0].models) == ((Span("PER", 1, 2), Span("LOC", 1, 2)), 2)
    assert found[0].probability > 0.5
    assert found[0].place.endswith("sentence 4, token 2")
    assert [one.pair.kind for one in found] == ["type"]
    assert len(plan.parts) == 6
    assert sum("Oslo" in part for part in plan.parts) <= 4  # not where a copy of it is held out
    assert "gold PER Oslo, predicted LOC Oslo" in next(iter(noise_lines(found, 1)))
    (row,) = noise_rows(found)
    assert (row["text"], row["spans"]) == ("in Oslo", [{"start": 3, "end": 7, "type": "PER"}])
    assert row["contradictions"][0]["predicted"] == {"start": 3, "end": 7, "type": "LOC"}
    assert found[0].row()[3:] == ["wrong type", "PER", "Oslo", "LOC", "Oslo", "in Oslo"]


def test_refused(tagger):
    with pytest.raises(InputError, match="rounds"):
        label_noise(tagger, data_of(CLEAN), JackKnife(folds=2), rounds=0)
    with pytest.raises(InputError, match=r"data\.unit"):
        label_noise(tagger, data_of(CLEAN, unit="document"), JackKnife(folds=2))
    same = TrainingPart(Corpus.from_sentences(2 * [{"word": ["Bo"], "label": ["B-PER"]}]), scheme="IOB2")
    with pytest.raises(InputError, match="more folds"):
        label_noise(tagger, same, JackKnife(folds=2))
