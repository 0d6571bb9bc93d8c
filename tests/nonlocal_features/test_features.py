"""Every feature against counts of strings, pair by pair."""

from collections import Counter
from collections.abc import Callable

import pytest
import torch

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.nonlocal_features import (
    CandidateSegments,
    ConjunctionConsistency,
    MajorityPhrase,
    MajoritySuperphrase,
    NonlocalFeature,
    PhraseConsistency,
    SubphraseConsistency,
)
from tests.nonlocal_features import naive
from tests.nonlocal_features.labelled import Case, make_batch, make_case

pytestmark = pytest.mark.usefixtures("way")

CONNECTORS = [",", "and", "or", "&", "nor"]
LABELS = LabelSet(("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER"))
MATCHING = {
    "phrase": (PhraseConsistency, naive.phrase),
    "subphrase": (SubphraseConsistency, naive.subphrase),
    "majority_phrase": (MajorityPhrase, naive.majority_phrase),
    "majority_superphrase": (MajoritySuperphrase, naive.majority_superphrase),
}
FEATURES: list[tuple[NonlocalFeature, Callable[..., Counter]]] = [
    *((make(), count) for make, count in MATCHING.values()),
    *((make("folded"), lambda d, y, c=count: c(d, y, True)) for make, count in MATCHING.values()),
    (ConjunctionConsistency(), lambda d, y: naive.conjunction(d, y, CONNECTORS)),
    (ConjunctionConsistency(["AND", "b"]), lambda d, y: naive.conjunction(d, y, ["and", "b"])),
]
IDS = [*MATCHING, *(f"{name}_folded" for name in MATCHING), "conjunction", "conjunction of others"]


CASES = [make_case(seed) for seed in (0, 3, 7, 11, 29)]


def expected(feature: NonlocalFeature, found: Counter, types: tuple[str, ...]) -> list[int]:
    """Counts in the order of the feature's names."""
    names = feature.names(types)
    stem = names[0].partition("(")[0]
    counts = {f"{stem}({a},{b})": n for (a, b), n in found.items()}
    assert counts.keys() <= set(names)
    return [counts.get(name, 0) for name in names]


def counted(feature: NonlocalFeature, case: Case) -> torch.Tensor:
    """-> (B, K, F)."""
    feature.allocate(case.label_set)
    segments = CandidateSegments(case.batch, case.labels, case.valid, case.label_set)
    return feature.counts(segments).unflatten(0, case.valid.shape)


def by_hand(feature: NonlocalFeature, text: str, *labellings: str) -> list[dict[str, int]]:
    """Counts that are not 0 by name. text: words, sentences divided by |; labels likewise."""
    document = [sentence.split() for sentence in text.split("|")]
    labels = torch.stack([torch.from_numpy(LABELS.encode(y.replace("|", " ").split())) for y in labellings])
    case = Case([document], make_batch([document]), labels[None], torch.ones(1, len(labels), dtype=torch.bool), LABELS)
    names = feature.names(LABELS.type_names)
    return [
        {name: int(n) for name, n in zip(names, row, strict=True) if n} for row in counted(feature, case)[0].tolist()
    ]


@pytest.mark.parametrize(("feature", "count"), FEATURES, ids=IDS)
def test_counts_of_strings(feature: NonlocalFeature, count: Callable[..., Counter]) -> None:
    total: Counter = Counter()
    for case in CASES:
        counts = counted(feature, case)
        for b, k in case.valid.nonzero().tolist()[:40]:
            found = count(case.documents[b], case.names(b, k))
            assert counts[b, k].tolist() == expected(feature, found, case.label_set.type_names)
            total += found
    assert len(total) == len(feature.names(["LOC", "ORG", "PER"]))  # the cases have something to count


def test_phrases_by_hand() -> None:
    found = by_hand(
        PhraseConsistency(),
        "New York , York | New York | new York York",
        "B-LOC I-LOC O B-LOC | B-ORG I-ORG | B-LOC I-LOC B-PER",
        "B-LOC I-LOC O B-LOC | B-LOC I-LOC | O B-LOC B-LOC",
        "O O O O | B-LOC I-LOC | O O O",
    )
    assert found == [
        {"phrase(LOC,ORG)": 1, "phrase(LOC,PER)": 1},
        {"phrase(LOC,LOC)": 1 + 3},
        {},
    ]


def test_subphrases_by_hand() -> None:
    found = by_hand(
        SubphraseConsistency(),
        "York York Minster | York | York Minster | Min York",
        "B-ORG I-ORG I-ORG | B-LOC | B-ORG I-ORG | B-PER I-PER",  # twice in the first, which counts once
        "B-ORG I-ORG I-ORG | O | B-LOC I-LOC | O B-LOC",
    )
    assert found == [
        {"subphrase(LOC,ORG)": 2, "subphrase(LOC,PER)": 1, "subphrase(ORG,ORG)": 1},
        {"subphrase(LOC,ORG)": 2, "subphrase(LOC,LOC)": 1},
    ]


def test_majorities_by_hand() -> None:
    found = by_hand(
        MajorityPhrase(),
        "x x x x x y",
        "B-PER B-PER B-LOC O O B-LOC",
        "B-PER B-LOC O O O O",
        "B-PER B-PER B-LOC B-LOC B-ORG O",
    )
    assert found == [
        # each PER sees PER and LOC, and keeps its own; LOC sees two PER
        {"majority_phrase(PER,PER)": 2, "majority_phrase(LOC,PER)": 1},
        {"majority_phrase(PER,LOC)": 1, "majority_phrase(LOC,PER)": 1},
        # a PER sees PER, two LOC, ORG; a LOC sees two PER, LOC, ORG; ORG sees a tie, where LOC is first
        {"majority_phrase(PER,LOC)": 2, "majority_phrase(LOC,PER)": 2, "majority_phrase(ORG,LOC)": 1},
    ]


def test_conjunctions_by_hand() -> None:
    found = by_hand(
        ConjunctionConsistency(),
        "in U.S. , EU , And Japan the x | , EU or",
        "O B-LOC O B-ORG O O B-LOC O B-PER | O B-ORG O",
        "O B-LOC O B-ORG I-ORG O B-LOC O B-PER | O O O",  # a connector inside of an entity
        "O B-LOC O O O O B-LOC O B-PER | O O O",
        "O B-LOC B-LOC B-ORG O O O O O | O O O",  # neighbours without a connector
    )
    assert found == [
        {"conjunction(LOC,LOC)": 1, "conjunction(LOC,ORG)": 2},
        {"conjunction(LOC,LOC)": 1, "conjunction(LOC,ORG)": 2},
        {},
        {},
    ]


def test_chains_end_with_sentences() -> None:
    feature = ConjunctionConsistency()
    assert by_hand(feature, "x , | and y", "B-PER O | O B-PER", "B-PER O | O O") == [{}, {}]
    assert by_hand(feature, "x , and y", "B-PER O O B-PER", "B-PER O O O") == [{"conjunction(PER,PER)": 1}, {}]


def test_segments_end_with_sentences() -> None:
    found = by_hand(PhraseConsistency(), "x | x y | x", "B-PER | I-PER O | I-PER", "B-PER | O O | O")
    assert found == [{"phrase(PER,PER)": 3}, {}]


@pytest.mark.parametrize("make", [make for make, _ in MATCHING.values()])
def test_unknown_match(make: type[NonlocalFeature]) -> None:
    with pytest.raises(InputError, match=r"match: .*'lower'"):
        make("lower")


@pytest.mark.parametrize("connectors", ["and", []])
def test_connectors_are_a_list(connectors: object) -> None:
    with pytest.raises(InputError, match="connectors"):
        ConjunctionConsistency(connectors)
