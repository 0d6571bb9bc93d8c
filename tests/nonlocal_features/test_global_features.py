"""Global features against strings, labelling by labelling; and what is learned and saved."""

from collections.abc import Iterator

import pytest
import torch

from structperc.data.labels import LabelSet
from structperc.data.lexicon import LowerCaseLexicon
from structperc.errors import InputError
from structperc.nonlocal_features import (
    CandidateSegments,
    EndBigrams,
    EndTrigrams,
    GlobalFeature,
    LastWord,
    LastWordLowerCase,
    LexiconPrefixes,
    LexiconShapes,
    LexiconSuffixes,
    Prefixes,
    QuotedEntity,
    QuotedTags,
    ShapesOfEntity,
    StartBigrams,
    StartTrigrams,
    Suffixes,
    WholeEntity,
)
from tests.nonlocal_features.labelled import QUOTING, Case, make_batch, make_case
from tests.nonlocal_features.naive_strings import Sentence, strings

LOWER_CASE = ["the", "the", "The", "xer", "animal", "day", "shot", "they", "here", "is", "nation", "for", "a1", "Arts"]
PLAIN = (WholeEntity, ShapesOfEntity, LastWord, LastWordLowerCase, Prefixes, Suffixes)
FLAGGED = (
    LexiconShapes,
    StartBigrams,
    EndBigrams,
    StartTrigrams,
    EndTrigrams,
    LexiconPrefixes,
    LexiconSuffixes,
    QuotedEntity,
)
LIMIT = 6
LABELS = LabelSet(("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER"))
SEEDS = (100, 104, 105, 107, 110, 111)  # IOB1, IOBES, IOB2 and BILOU; empty and one-token documents


def features(typed: bool) -> list[GlobalFeature]:
    lexicon = LowerCaseLexicon.from_words(LOWER_CASE)
    tags = [QuotedTags(LIMIT, lexicon)] if typed else []
    return [*(cls(typed) for cls in PLAIN), *(cls(typed, lexicon) for cls in FLAGGED), *tags]


every_feature = pytest.mark.parametrize(
    "feature",
    [
        *features(True),
        *(f for f in features(False) if isinstance(f, WholeEntity | Prefixes | LexiconShapes | QuotedEntity)),
    ],
    ids=lambda f: f"{type(f).__name__}{'' if f.typed or f.template == 'Q' else ' untyped'}",
)


def segments_of(case: Case) -> CandidateSegments:
    return CandidateSegments(case.batch, case.labels, case.valid, case.label_set)


def sentences(case: Case, b: int, k: int) -> Iterator[tuple[int, list[str], list[str]]]:
    """Position, words and labels of each sentence of a labelling."""
    at, names = 0, case.names(b, k)
    for words in case.documents[b]:
        yield at, words, names[at : at + len(words)]
        at += len(words)


def expected(feature: GlobalFeature, case: Case, b: int, k: int) -> set[str]:
    lexicon = {"the", "xer", "animal", "day", "shot", "they", "here", "is", "nation", "for", "a1"}
    typed = feature.typed or feature.template == "Q"
    each = (Sentence(words, labels, lexicon, LIMIT) for _, words, labels in sentences(case, b, k))
    return set().union(*(strings(feature.template, sentence, typed) for sentence in each))


def recovered(feature: GlobalFeature, case: Case) -> tuple[dict[tuple[int, int], set[str]], set[tuple[str, int]]]:
    """-> strings of each labelling, and all pairs (string, key)."""
    K = case.valid.shape[1]
    spelled = {(b, k): set() for b, k in case.valid.nonzero().tolist()}
    located = {place: list(sentences(case, *place)) for place in spelled}
    pairs = set()
    for labelling, key, start, end, kind, part in zip(
        *(column.tolist() for column in feature.occurrences(segments_of(case))), strict=True
    ):
        place = divmod(labelling, K)
        at, words, labels = next(s for s in reversed(located[place]) if s[0] <= start)
        name = case.label_set.type_names[kind] if kind >= 0 else ""
        string = feature.string(words, labels, start - at, end - at, name, part)
        spelled[place].add(string)
        pairs.add((string, key))
    return spelled, pairs


@every_feature
def test_strings_and_keys(feature: GlobalFeature) -> None:
    pairs = set()
    for seed in SEEDS:
        case = make_case(seed, QUOTING)
        case = case._replace(labels=case.labels[:, :4], valid=case.valid[:, :4])
        found, more = recovered(feature, case)
        for (b, k), strings_of_labelling in found.items():
            assert strings_of_labelling == expected(feature, case, b, k)
        pairs |= more
    spelled, keys = zip(*pairs, strict=True)
    assert len(set(spelled)) == len(set(keys)) == len(pairs)  # equal strings, equal keys, in all batches


def test_the_cases_have_all_kinds_of_strings() -> None:
    total: dict[str, set[str]] = {}
    for feature in features(True):
        for seed in SEEDS:
            case = make_case(seed, QUOTING)
            for b, k in case.valid[:, :4].nonzero().tolist():
                for string in expected(feature, case, b, k):
                    total.setdefault(string.partition("=")[0], set()).add(string)
    bigrams = [f"{x}{i:02b}" for x in ("BO", "BE") for i in range(4)]
    trigrams = [f"{x}{i:03b}" for x in ("TO", "TO2", "TE", "TE2") for i in range(8)]
    names = ["WE", "FF", "GF", "LW", "LWLC", "PF", "PF2", "SF", "SF2", "Q", "Q2", "QF", "QF2", *bigrams, *trigrams]
    assert sorted(total) == sorted(names)
    assert {name for name, found in total.items() if len(found) < 10} <= {"LWLC"}
    assert {string[3:] for string in total["LWLC"]} >= {"C=0/PER", "C=1/LOC"}
    assert {string[3] for string in total["QF"]} == {"0", "1"}
    assert any(string.startswith("Q2=NULL NULL") for string in total["Q2"])
    assert any(string.endswith(" NULL NULL") for string in total["Q2"])


def by_hand(feature: GlobalFeature, text: str, labels: str) -> set[str]:
    """Strings of one labelling. text: words, sentences divided by |; labels likewise."""
    document = [sentence.split() for sentence in text.split("|")]
    ids = torch.from_numpy(LABELS.encode(labels.replace("|", " ").split()))
    case = Case([document], make_batch([document]), ids[None, None], torch.ones(1, 1, dtype=torch.bool), LABELS)
    return recovered(feature, case)[0][0, 0]


EXAMPLE = 'Animal Xer , " The Day They Shot John Lennon . " played | here'
EXAMPLE_LABELS = "B-PER I-PER O O B-ORG I-ORG I-ORG I-ORG I-ORG I-ORG O O O | O"


@pytest.mark.parametrize(
    ("feature", "wanted"),
    [
        (WholeEntity(), {"WE=Animal Xer/PER", "WE=The Day They Shot John Lennon/ORG"}),
        (WholeEntity(typed=False), {"WE=Animal Xer", "WE=The Day They Shot John Lennon"}),
        (ShapesOfEntity(), {"FF=Aa Aa/PER", "FF=Aa Aa Aa Aa Aa Aa/ORG"}),
        (LexiconShapes(), {"GF=Aa1 Aa1/PER", "GF=Aa1 Aa1 Aa1 Aa1 Aa0 Aa0/ORG"}),
        (LastWord(), {"LW=Xer/PER", "LW=Lennon/ORG"}),
        (LastWordLowerCase(typed=False), {"LWLC=0"}),
        (Prefixes(), {"PF=Aa/PER", "PF=Aa Aa/PER", *(f"PF={' '.join(['Aa'] * n)}/ORG" for n in range(1, 7))}),
        (QuotedEntity(), {"QF=1 6 0 Aa1 Aa0/ORG", "QF2=1 1 Aa1 Aa0/ORG"}),  # the paper's example
        (QuotedEntity(typed=False), {"QF=1 6 0 Aa1 Aa0", "QF2=1 1 Aa1 Aa0"}),
    ],
    ids=lambda x: type(x).__name__,
)
def test_by_hand(feature: GlobalFeature, wanted: set[str]) -> None:
    feature.collect_lexicon(LOWER_CASE)
    assert by_hand(feature, EXAMPLE, EXAMPLE_LABELS) == wanted


def test_boundaries_by_hand() -> None:
    feature = StartBigrams()
    feature.collect_lexicon(LOWER_CASE)
    assert by_hand(feature, "x here | Animal x", "O O | B-PER O") == {  # no word of another sentence
        "BO00=NULL Animal/PER",
        "BO01=NULL Aa1/PER",
        "BO10=NULL Animal/PER",
        "BO11=NULL Aa1/PER",
    }
    found = by_hand(EndTrigrams(), "Animal x", "B-PER O")
    assert {"TE000=NULL Animal x/PER", "TE111=NULL Aa0 a0/PER", "TE2000=Animal x NULL/PER"} <= found
    assert len(found) == 16


def test_suffixes_read_backwards() -> None:
    assert by_hand(Suffixes(), "U.S. 1996", "B-LOC I-LOC") == {"SF=0/LOC", "SF=0 A.A./LOC"}
    assert by_hand(Suffixes(), "1996 U.S.", "B-LOC I-LOC") == {"SF=A.A./LOC", "SF=A.A. 0/LOC"}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ('" a " b " c', 1),
        ('" a | b "', 0),  # of two sentences
        ('" a " b " 1 "', 2),
        ('" " a "', 0),  # nothing within the first two
        ("'' a ``", 1),  # drawn the wrong way round
        ('" , . "', 0),
        ('a "', 0),
        ("x", 0),
    ],
)
def test_matching_quotation_marks(text: str, pairs: int) -> None:
    labels = " | ".join(" ".join(["O"] * len(sentence.split())) for sentence in text.split("|"))
    assert len(by_hand(QuotedTags(), text, labels)) == 2 * pairs


def test_long_quotes() -> None:
    text, labels = '" a a a "', "O B-PER O O O"
    assert by_hand(QuotedTags(limit=4), text, labels) == set()
    assert by_hand(QuotedTags(limit=5), text, labels) == {
        'Q="0 O a0 B-PER a0 O a0 O "0 O',
        'Q2=NULL NULL "0 O a0 B-PER a0 O a0 O "0 O NULL NULL',
    }
    with pytest.raises(InputError, match="limit 2"):
        QuotedTags(limit=2)


# -- what is learned ------------------------------------------------------------------------------------------


def learned(seed: int, cls: type[GlobalFeature] = StartBigrams) -> tuple[GlobalFeature, Case]:
    case = make_case(seed, QUOTING)
    feature = cls()
    feature.collect_lexicon(LOWER_CASE)
    keys = feature.occurrences(segments_of(case)).keys.unique()
    feature.set_vocabulary(keys, [f"string {i}" for i in range(len(keys))])
    with torch.no_grad():
        feature.weight.copy_(torch.randint(-5, 6, keys.shape))
    return feature, case


@every_feature
def test_known_strings(feature: GlobalFeature) -> None:
    segments = segments_of(make_case(101, QUOTING))
    occurrences = feature.occurrences(segments)
    known = occurrences.keys.unique()[::2]
    feature.set_vocabulary(known)
    labellings, ids = feature.feature_ids(segments)
    wanted = set(zip(occurrences.candidates.tolist(), occurrences.keys.tolist(), strict=True))
    wanted = sorted((labelling, key) for labelling, key in wanted if key in set(known.tolist()))
    assert wanted == list(zip(labellings.tolist(), known[ids].tolist(), strict=True))
    assert len(feature.weight) == len(known)
    assert not feature.weight.any()
    counts = feature.counts(segments)
    assert counts.is_sparse
    assert counts.shape == (segments.valid.numel(), len(known))
    assert counts.to_dense().sum() == len(ids)


def test_before_learning_nothing_is_found() -> None:
    case = make_case(101, QUOTING)
    feature = WholeEntity()
    feature.allocate(case.label_set)
    labellings, ids = feature.feature_ids(segments_of(case))
    assert len(labellings) == len(ids) == len(feature.names(case.label_set.type_names)) == 0
    scores = feature(segments_of(case))
    scores.sum().backward()
    assert scores.shape == case.valid.shape
    assert not scores.any()


def test_names() -> None:
    feature = WholeEntity()
    feature.set_vocabulary(torch.tensor([-1, 0x1234]))
    assert feature.names(["PER"]) == ["WE#ffffffffffffffff", "WE#0000000000001234"]
    feature.strings = ["WE=a", "WE=b"]
    assert feature.names(["PER"]) == ["WE=a", "WE=b"]


@pytest.mark.parametrize(
    ("keys", "strings", "message"),
    [([2, 1], None, "must ascend"), ([1, 1], None, "must ascend"), ([1, 2], ["a"], "1 strings cannot be")],
)
def test_wrong_vocabularies(keys: list[int], strings: list[str] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WholeEntity().set_vocabulary(torch.tensor(keys), strings)


def test_pruning_keeps_scores() -> None:
    feature, case = learned(107)
    before, keep = feature(segments_of(case)), feature.weight != 0
    names = feature.names([])
    feature.prune(keep)
    assert 0 < len(feature.keys) == len(feature.weight) == int(keep.sum()) < len(keep)
    assert feature.names([]) == [name for name, kept in zip(names, keep.tolist(), strict=True) if kept]
    assert feature(segments_of(case)).equal(before)
    with pytest.raises(InputError, match="keep"):
        feature.prune(keep)


@pytest.mark.parametrize("cls", [WholeEntity, LexiconShapes, QuotedEntity])
def test_saved_vocabularies_of_any_size(cls: type[GlobalFeature]) -> None:
    feature, case = learned(107, cls)
    scores = feature(segments_of(case))
    assert scores.any()
    for other in (cls(), learned(110, cls)[0]):
        other.allocate(case.label_set)
        other.load_state_dict(feature.state_dict())
        assert other(segments_of(case)).equal(scores)
        assert other.keys.equal(feature.keys)
        assert other.weight.requires_grad
        assert other.names([])[:1] == [f"{cls.template}#{int(feature.keys[0]) % 2**64:016x}"]  # not those of before


def test_loading_the_same_vocabulary() -> None:
    feature, _ = learned(107)
    weight, state = feature.weight, {name: value.clone() for name, value in feature.state_dict().items()}
    with torch.no_grad():
        weight.zero_()
    feature.load_state_dict(state)
    assert feature.weight is weight
    assert weight.any()
    assert feature.names([])[0] == "string 0"


def test_missing_keys_are_an_error() -> None:
    feature, _ = learned(107)
    with pytest.raises(RuntimeError, match="keys"):
        feature.load_state_dict({"weight": torch.zeros(3), "lexicon.words": torch.zeros(0, dtype=torch.int64)})


@pytest.mark.parametrize("text", [None, "file"])
def test_reading_words(text: str | None, tmp_path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("Animal animal animal")
    feature = LexiconShapes(lexicon=LowerCaseLexicon(text and str(path)))
    feature.collect_lexicon(["xer"])
    assert by_hand(feature, "Animal Xer", "B-PER I-PER") == ({"GF=Aa0 Aa1/PER"} if text is None else {"GF=Aa1 Aa0/PER"})
    WholeEntity().collect_lexicon(["xer"])  # which asks nothing
