"""Features of segments against plain strings, and a tagger that learns them."""

import re
from collections import Counter

import numpy as np
import pytest
import torch

from structperc import Corpus, FeatureExtractor, Tagger, load
from structperc.analysis.weight_ranking import weights
from structperc.chain import KBest
from structperc.criteria import HingeLoss, MarginLoss, TokenCrossEntropyLoss
from structperc.data.words import word_shape
from structperc.datamodules.encoded import EncodedCorpus
from structperc.errors import InputError
from structperc.features.hashing import NO_KEY, string_hash
from structperc.features.segment_index import HashedSegmentIndex, compress_names, expand_names
from structperc.features.string_arrays import NO_FEATURE
from structperc.models import Model
from structperc.online.learner import OnlineLearner
from structperc.optim import Perceptron
from structperc.scorers import SegmentCandidates, SegmentFeatures, SegmentLinear, SparseLinear, Sum
from structperc.taggers.sequential_learning import sequence_learner
from tests.tiny import Sentences, sentences

TEMPLATES = ["length", "w[all]", "wl[first]|wl[last]", "w[-1]|shape[all]", "w[+2]", "go[phrase]|length"]
TEMPLATES += ["c2[last]", "c2[all]"]
D = 3
CLUSTERS = {"New": "001", "York": "011"}
SENTENCES = [["He", "saw", "New", "York"], ["NEW", "york"], ["New", "York", "saw", "He", "saw"], ["NEW", "York"]]


@pytest.fixture(params=[None, 8])
def features(tmp_path, request):
    (tmp_path / "go.txt").write_text("New York\nnew\n", encoding="utf-8")
    rows = [f"{path}\t{word}\t1" for word, path in CLUSTERS.items()]
    (tmp_path / "clusters.tsv").write_text("\n".join(rows), encoding="utf-8")
    files = {"gazetteers": {"go": str(tmp_path / "go.txt")}, "clusters": str(tmp_path / "clusters.tsv")}
    return SegmentFeatures(TEMPLATES, max_length=D, cutoff=2, hash_bits=request.param, **files)


def naive(words, start, stop):
    """Names of the features of a segment."""

    def at(place):
        return words[place] if 0 <= place < len(words) else "(outside)"

    inside = words[start:stop]
    lower = [word.lower() for word in inside]
    kind = "exact" if inside in (["New", "York"], ["new"]) else "folded" if lower in (["new", "york"], ["new"]) else ""
    clusters = [next((CLUSTERS[one][:2] for one in (word, word.lower()) if one in CLUSTERS), "") for word in inside]
    shapes = " ".join(word_shape(word) for word in inside)
    found = [f"length={len(inside)}", f"w[all]={' '.join(inside)}", f"wl[first]={lower[0]}|wl[last]={lower[-1]}"]
    found += [f"w[-1]={at(start - 1)}|shape[all]={shapes}", f"w[+2]={at(stop + 1)}"]
    phrases = [f"go[phrase]={kind}|length={len(inside)}"] if kind else []
    last = [f"c2[last]={clusters[-1]}"] if clusters[-1] else []
    return [*found, *phrases, *last, *([f"c2[all]={' '.join(clusters)}"] if all(clusters) else [])]


@pytest.mark.parametrize("features", [None], indirect=True)
def test_features_are_those_of_plain_strings(features):
    corpus = Corpus.from_sentences([{"word": words} for words in SENTENCES])
    features.build_vocabulary(corpus)
    places = [(words, i, i + n) for words in SENTENCES for n in (1, 2, 3) for i in range(len(words) - n + 1)]
    counts = Counter(name for place in places for name in naive(*place))
    known = {name for name, count in counts.items() if count >= 2}
    assert features.n_features == len(known)
    for d, lists in enumerate(features.encode_inputs(corpus)):
        tokens = iter(range(corpus.tokens))
        for words in SENTENCES:
            for i in range(len(words)):
                token = next(tokens)
                own = lists.ids[lists.offsets[token] : lists.offsets[token + 1]].tolist()
                names = [name for name in naive(words, i, i + d + 1) if name in known] if i + d < len(words) else []
                assert features.feature_names(own) == names


def mix(x):
    """The finaliser of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def naive_buckets(words, start, stop, bits):
    """Buckets of w[all] and wl[first]|length of a segment."""
    run = 0
    for word in words[start:stop]:
        run = mix(run ^ string_hash(word, "value"))
    one = mix(string_hash("w[all]", "template") ^ run)
    two = mix(string_hash("wl[first]|length", "template") ^ string_hash(words[start].lower(), "value"))
    return [one % 2**bits, mix(two ^ stop - start) % 2**bits]


def test_hashed_features():
    corpus = Corpus.from_sentences([{"word": words} for words in SENTENCES])
    features = SegmentFeatures(["w[all]", "wl[first]|length"], max_length=2, cutoff=3, hash_bits=4)
    features.build_vocabulary(corpus)
    places = [(words, i, i + n) for n in (1, 2) for words in SENTENCES for i in range(len(words) - n + 1)]
    counts = Counter(bucket for place in places for bucket in naive_buckets(*place, 4))
    kept = sorted(bucket for bucket, count in counts.items() if count >= 3)
    assert len(kept) < len(counts) < len({name for place in places for name in naive(*place)})
    assert features.n_features == len(kept)
    for n, lists in enumerate(features.encode_inputs(corpus), 1):
        tokens = [(words, i) for words in SENTENCES for i in range(len(words))]
        for (words, i), own in zip(tokens, torch.tensor_split(lists.ids, lists.offsets[1:-1]), strict=True):
            buckets = naive_buckets(words, i, i + n, 4) if i + n <= len(words) else []
            assert own.tolist() == [kept.index(bucket) for bucket in buckets if bucket in kept]
    assert "and" in " ".join(features.feature_names(range(len(kept))))
    every = HashedSegmentIndex(4, np.arange(16, dtype=np.int32), np.zeros(0, np.int32), compress_names([]), 0, 0)
    assert every.find(np.array([NO_KEY, 19], np.uint64)).tolist() == [NO_FEATURE, 3]  # no value in one of the parts


def test_names_of_hashed_features():
    """Without collisions they are those of plain strings."""

    def names_of(words, start, stop):
        return [f"w[all]={' '.join(words[start:stop])}", f"wl[first]={words[start].lower()}|length={stop - start}"]

    corpus = Corpus.from_sentences([{"word": words} for words in SENTENCES])
    features = SegmentFeatures(["w[all]", "wl[first]|length"], max_length=2, hash_bits=20)
    features.build_vocabulary(corpus)
    places = [(words, i) for words in SENTENCES for i in range(len(words))]
    counts = Counter(
        name for words, i in places for n in (1, 2)[: len(words) - i] for name in names_of(words, i, i + n)
    )
    known = {name for name, count in counts.items() if count >= 2}
    assert {*expand_names(features.names.numpy())} == known
    for n, lists in enumerate(features.encode_inputs(corpus), 1):
        for (words, i), own in zip(places, torch.tensor_split(lists.ids, lists.offsets[1:-1]), strict=True):
            expected = names_of(words, i, i + n) if i + n <= len(words) else []
            assert features.feature_names(own.tolist()) == [name for name in expected if name in known]


def test_names_are_compressed():
    for names in ([], ["w[all]=New York", "w[all]=\udc80"]):
        assert expand_names(compress_names(names)) == names
    assert expand_names(compress_names(["w[all]=a\nb", "length=1"])) == ["w[all]=a b", "length=1"]


def make_tagger(data, features=None, **options):
    segments = features or SegmentFeatures(["w[all]", "length", "w[-1]"], max_length=D)
    tokens, scorer = FeatureExtractor(["w[0]", "w[-1]"]), SegmentLinear(SparseLinear(), segments)
    tagger = Tagger(
        tokens, scorer, **{"criterion": HingeLoss(), "search": KBest(1), "optimizer": Perceptron, **options}
    )
    tagger.build_vocabulary(data)
    return tagger


class OneWord(SegmentCandidates):
    """Segments of one word, as a user's choice of candidates."""

    def find(self, corpus, max_length):
        return np.arange(corpus.tokens)[:, None] * 0 == np.arange(max_length)


@pytest.mark.parametrize("candidates", [None, OneWord()], ids=["all segments", "candidates"])
@pytest.mark.parametrize("criterion", [HingeLoss(), MarginLoss(2.0)], ids=["hinge", "wrong rivals"])
def test_compiled_learning_makes_the_updates_of_gradients(criterion, candidates):
    data = Sentences(sentences(25))
    corpus, segments = data.corpus("train"), SegmentFeatures(["w[all]", "length", "w[-1]"], D, candidates=candidates)
    compiled, plain = (make_tagger(data, segments, criterion=criterion, search=KBest(2)) for _ in range(2))
    optimizers = [Perceptron(tagger.parameters()) for tagger in (compiled, plain)]
    rows = EncodedCorpus(corpus, compiled.features, compiled.labels, compiled.inputs(corpus))
    learner = sequence_learner(compiled, optimizers[0])
    assert isinstance(learner, OnlineLearner)
    order = [*range(25)] * 2
    learned = learner.learn(rows.flat(order))
    losses, wrong = [], 0
    for row in order:
        optimizers[1].zero_grad()
        scored = plain.score_batch(rows[[row]])
        wrong += int((plain.without_cost(rows[[row]], scored).candidates.labels[0, 0] != scored.gold[0]).sum())
        loss = plain.criterion(scored).sum()
        loss.backward()
        optimizers[1].step()
        losses.append(loss.item())
    assert learned.losses.tolist() == losses
    assert learned.wrong == wrong
    for own, other in zip(compiled.parameters(), plain.parameters(), strict=True):
        assert own.any()
        assert torch.equal(own, other)
        assert torch.equal(optimizers[0].sums(own), optimizers[1].sums(other))


def test_saved_tagger(features, tmp_path):
    data = Sentences(sentences(8))
    tagger = make_tagger(data, features)
    torch.manual_seed(1)
    for p in tagger.parameters():
        torch.nn.init.normal_(p)
    text = [["Anna", "met", "New", "York"], []]
    tagger.save(tmp_path / "model")
    (tmp_path / "go.txt").unlink()
    again = Model.load(tmp_path / "model")
    assert again.kbest(text, 5) == tagger.kbest(text, 5)
    groups = weights(again, top=3)
    assert [group.sums.name for group in groups] == ["node", "transition", "segment"]
    largest = tagger.scorer.weight.abs().argmax().item() // tagger.scorer.weight.shape[1]
    assert groups[2].largest[0].feature == tagger.scorer.segments.feature_names([largest])[0]
    further = make_tagger(data, features, init_from=str(tmp_path / "model"))
    assert further.tag(text) == tagger.tag(text)


@pytest.mark.parametrize("features", [None], indirect=True)
def test_errors(features, tmp_path):
    made = [[("a", "B-X"), *[("b", "I-X")] * 3]]
    with pytest.raises(InputError, match="4 tokens"):
        make_tagger(Sentences(made))
    known = [["Anna", "B-PER"], *[["Anna", "I-PER"]] * 3, ["met", "?"]]
    rows = {"word": [word for word, _ in known], "label": ["O"] * 5, "allowed": [text for _, text in known]}
    incomplete = Corpus.from_sentences([rows])
    SegmentLinear(SparseLinear(), SegmentFeatures(["length"], max_length=4)).check_data(incomplete)
    with pytest.raises(InputError, match="token 1: a segment of 4 tokens"):
        SegmentLinear(SparseLinear(), SegmentFeatures(["length"], max_length=D)).check_data(incomplete)
    for place in ("3", "+0"):
        with pytest.raises(InputError, match=rf"w\[{re.escape(place)}\]"):
            SegmentFeatures([f"w[{place}]"])
    with pytest.raises(InputError, match="go"):
        SegmentFeatures(["go[phrase]"])
    (tmp_path / "none.txt").write_text("\n \n")
    with pytest.raises(InputError, match=r"none\.txt: no phrases"):
        SegmentFeatures(["go[phrase]"], gazetteers={"go": str(tmp_path / "none.txt")}).build_vocabulary(incomplete)
    with pytest.raises(InputError, match="hash_bits"):
        SegmentFeatures(["length"], hash_bits=3)
    with pytest.raises(InputError, match="cutoff"):
        SegmentFeatures(["length"], hash_bits=8, cutoff=256)
    data = Sentences(sentences(3))
    corpus = data.corpus("train")
    tagger = make_tagger(data, criterion=TokenCrossEntropyLoss())
    with pytest.raises(InputError, match="TokenCrossEntropyLoss"):
        tagger.tag([["Anna"]])
    tagger.scorer = Sum([tagger.scorer])
    rows = EncodedCorpus(corpus, tagger.features, tagger.labels, tagger.inputs(corpus))
    with pytest.raises(InputError, match=r"SegmentLinear\.labels"):
        tagger.scorer(rows[[0]])


def test_column_that_only_segments_read(tmp_path):
    (tmp_path / "clusters.tsv").write_text("001\tAnna\t1\n", encoding="utf-8")
    data, corpus = Sentences([]), Sentences(sentences(12)).corpus("train")
    data.rows = corpus.replace_column("pos", [word[0] for word in corpus.columns["word"]]).to_dataset()
    segments = SegmentFeatures(["pos[all]", "c2[first]"], D, clusters=str(tmp_path / "clusters.tsv"))
    tagger = make_tagger(data, segments)
    for p in tagger.parameters():
        torch.nn.init.normal_(p)
    tagger.save(tmp_path / "model")
    text = [{"word": ["Anna", "met"], "pos": ["A", "m"]}]
    for model in (load(tmp_path / "model"), tagger):
        assert model.columns == ["word", "pos"]
        assert model.tag(text) == tagger.tag(text)
        with pytest.raises(InputError, match="pos"):
            model.annotate("Anna met Rome.")
