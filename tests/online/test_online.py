"""Sequences learned one after the other leave what batches of one sequence leave by gradients."""

from copy import copy
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from numba import njit

from structperc.chain import KBest, path_score
from structperc.criteria import HingeLoss, LocalAndNonlocal, MarginLoss, PairwiseLoss, PerceptronLoss, SegmentCosts
from structperc.data import Corpus, Synthetic
from structperc.datamodules.encoded import EncodedCorpus
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.kernels.array_types import SegmentArrays, WeightTables
from structperc.nonlocal_features import MajorityPhrase, PhraseConsistency
from structperc.online import compiled_segments
from structperc.online.compiled import best_path, best_wrong_path, chain_memory
from structperc.online.learner import OnlineLearner
from structperc.optim import PassiveAggressive, where
from structperc.optim import Perceptron as Additive
from structperc.optim.averaged_perceptron import StepSizeRule
from structperc.optim.full_batch import DivergenceError
from structperc.scorers import SegmentFeatures, SegmentLinear, SparseLinear
from structperc.structures import Lattice, SegmentScores
from structperc.taggers import Tagger
from structperc.taggers import tagger as tagger_module
from structperc.taggers.learning import GradientTraining
from structperc.taggers.sequential_learning import CandidateLearner, sequence_learner
from tests.oracle import label_sequences
from tests.tiny import EDGE, Sentences, fit, make_tagger, sentences

RAW, PA = partial(Additive, average=False), partial(PassiveAggressive, variant="PA")
LEARNERS = {  # each rule for updates and for steps at least once: pairs of them are compiled
    "perceptron": (PerceptronLoss(), RAW, EDGE),
    "averaged": (PerceptronLoss(), Additive, ()),
    "segment costs": (HingeLoss(SegmentCosts(missed=4.0, wrong_boundary=2.0)), PA, EDGE),
    "PA-I": (HingeLoss(1.0), partial(PassiveAggressive, variant="PA-I", C=0.1), ()),
    "PA-II": (MarginLoss(1.0), partial(PassiveAggressive, variant="PA-II", C=0.1, average=False), EDGE),
}


def state(trainer) -> tuple[list[torch.Tensor], int, dict[str, float]]:
    """Weights and sums of averages, the number of steps, and what was logged."""
    optimizer = trainer.optimizers[0]
    tensors = [p.detach() for group in optimizer.param_groups for p in group["params"]]
    sums = [optimizer.state[p]["sums"] for p in tensors if "sums" in optimizer.state.get(p, {})]
    logged = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("train/")}
    return [*tensors, *sums], optimizer.param_groups[0]["steps"], logged


def compared(train, monkeypatch, exact: bool) -> None:
    """Hold `train(7)`, of that batch size, against batches of one sequence that are learned by gradients."""
    with monkeypatch.context() as gradients:
        gradients.setattr(tagger_module, "sequence_learner", lambda *_: None)
        tensors, steps, logged = state(train(1))
    found, counted, seen = state(train(7))
    assert counted == steps
    assert seen == pytest.approx(logged, rel=1e-5)
    for mine, other in zip(found, tensors, strict=True):
        torch.testing.assert_close(mine, other, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-3)
    assert any(len(x) and x.abs().max() > 0 for x in found)


@pytest.mark.parametrize("name", LEARNERS)
def test_local_weights(name, monkeypatch):
    made = sentences(30)
    criterion, optimizer, edge = LEARNERS[name]
    exact = optimizer in (RAW, Additive)

    def train(size):
        data = Sentences(made, batch_size=size)
        tagger = make_tagger(data, criterion, optimizer, edge=edge, sparse_grad=True)
        with torch.no_grad():
            for p in tagger.parameters() if exact else ():  # whole numbers, unless rounding would decide ties
                p.round_()
        trainer = fit(tagger, data, 2)
        assert size == 1 or isinstance(tagger.training_method.learner, OnlineLearner)
        return trainer

    compared(train, monkeypatch, exact)


class Whole(LocalAndNonlocal):
    """The updates of documents alone, whose sentences are independent of each other."""

    def local_rule(self):
        return None


def with_segments():
    return SegmentLinear(SparseLinear(), SegmentFeatures(["w[all]", "w[-1]|length"], max_length=8))


@pytest.mark.parametrize(
    ("criterion", "scorer"),
    [
        (MarginLoss(5.0), SparseLinear),
        (LocalAndNonlocal(5.0), SparseLinear),
        (LocalAndNonlocal(5.0, C_local=9.0, first="local"), SparseLinear),
        (LocalAndNonlocal(5.0, local="conservative"), SparseLinear),
        (LocalAndNonlocal(0.0, cost=2.0), SparseLinear),
        (LocalAndNonlocal(0.0, cost=SegmentCosts(missed=4.0)), SparseLinear),
        (Whole(5.0, local_unit="sentence"), SparseLinear),
        (LocalAndNonlocal(5.0), with_segments),
        (Whole(5.0, local_unit="sentence"), with_segments),
    ],
    ids=["4.1", "4.2", "local first", "conservative", "cost", "segment costs", "whole", "segments", "whole, segments"],
)
def test_local_and_nonlocal_weights(criterion, scorer, monkeypatch):
    def train(size):
        data = Synthetic(train=9, dev=1, test=1, unit="document", batch_size=size)
        tagger = documents_tagger(criterion, scorer=scorer())
        trainer = fit(tagger, data, 2, limit_val_batches=0)
        assert size == 1 or isinstance(tagger.training_method.learner, CandidateLearner)
        return trainer

    compared(train, monkeypatch, exact=True)


class Weighted:
    """Data with weights of sequences, every fourth of which is 0, or without those sequences."""

    without = False

    def read(self, split):
        name, found = super().read(split) or (None, None)
        if found is None:
            return None
        corpus = found if isinstance(found, Corpus) else Corpus.from_dataset(found, self.unit, name)
        weights = np.resize(["2", "0.5", "0", "1"], len(corpus)).repeat(corpus.lengths)
        corpus = corpus.replace_column("weight", weights.tolist())
        return name, corpus.subset(np.arange(len(corpus)) % 4 != 2) if self.without else corpus


class WeightedSentences(Weighted, Sentences):
    pass


class WeightedDocuments(Weighted, Synthetic):
    pass


def left_out(data, size):
    """The data; for gradients, that is batches of one sequence, without sequences of weight 0."""
    found = copy(data)
    found.without, found._corpora, found._encoded, found._encoders = size == 1, {}, {}, {}
    return found


@pytest.mark.parametrize("name", ["averaged", "PA-I"])
def test_weights_of_sentences(name, monkeypatch):
    made = sentences(20)
    criterion, optimizer, _ = LEARNERS[name]

    def train(size):
        data = WeightedSentences(made, batch_size=size)
        return fit(make_tagger(data, criterion, optimizer, sparse_grad=True), left_out(data, size), 2)

    compared(train, monkeypatch, exact=False)


def test_weights_of_documents(monkeypatch):
    def train(size):
        data = WeightedDocuments(train=12, dev=1, test=1, unit="document", batch_size=size)
        tagger = documents_tagger(LocalAndNonlocal(5.0))
        tagger.build_vocabulary(data)
        return fit(tagger, left_out(data, size), 2, limit_val_batches=0)

    compared(train, monkeypatch, exact=False)


def documents_tagger(criterion, nonlocal_features=(PhraseConsistency, MajorityPhrase), scorer=None) -> Tagger:
    edge = [] if isinstance(scorer, SegmentLinear) else ["bias"]
    features, more = FeatureExtractor(["kazama2007"], edge, progress=False), [make() for make in nonlocal_features]
    return Tagger(features, scorer or SparseLinear(), criterion, KBest(5), Additive, more)


# -- sentences of documents ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[SparseLinear, with_segments])
def both(request) -> tuple[Tagger, EncodedCorpus, EncodedCorpus]:
    """A tagger, the documents of a corpus, and the sentences of these documents."""
    documents, alone = (Synthetic(train=12, dev=1, test=1, unit=unit) for unit in ("document", "sentence"))
    here = {"of": ["w", "wl"], "at": [0]}  # windows would reach into neighbouring sentences of a document
    edge = [here] if request.param is SparseLinear else []
    features = FeatureExtractor([here, "bias"], edge, progress=False)
    tagger = Tagger(features, request.param(), MarginLoss(4.0, unit="sentence"), KBest(2), Additive)
    tagger.build_vocabulary(documents)
    return tagger, tagger.encode(documents.corpus("train")), tagger.encode(alone.corpus("train"))


@pytest.mark.parametrize(
    "criterion", [MarginLoss(4.0, unit="sentence"), HingeLoss(1.0, unit="sentence")], ids=["3.1", "hinge"]
)
def test_updates_by_sentence(criterion, both):
    tagger, documents, alone = both
    found = []
    for rows in (documents, alone):
        tagger.criterion = criterion
        tagger.allocate(tagger.labels)
        optimizer = Additive(tagger.parameters())
        learned = sequence_learner(tagger, optimizer).learn(rows.flat(range(len(rows))))
        assert learned.updates > 5
        assert len(learned.losses) == len(alone)
        found.append([*tagger.parameters(), *(optimizer.sums(p) for p in tagger.parameters())])
    for mine, other in zip(*found, strict=True):
        assert torch.equal(mine, other)


def test_losses_by_sentence(both):
    tagger, documents, alone = both
    torch.manual_seed(1)
    with torch.no_grad():
        for p in tagger.parameters():
            p.normal_()
    for criterion in (MarginLoss(4.0, unit="sentence"), HingeLoss(1.0, unit="sentence")):
        tagger.criterion = criterion
        tagger.bind_parts()
        mine, other = (criterion(tagger.score_batch(rows[range(len(rows))])) for rows in (documents, alone))
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
    labelled = [tagger.label(rows.corpus) for rows in (documents, alone)]
    assert [label for one in labelled[0] for label in one] == [label for one in labelled[1] for label in one]


def test_updates_by_sentence_need_online_learning():
    criterion = LocalAndNonlocal(3.0, local_unit="sentence")
    data = Synthetic(train=4, dev=1, test=1, unit="document", batch_size=1)
    with pytest.raises(InputError, match="local_unit sentence"):
        fit(documents_tagger(criterion), data, 1, limit_val_batches=0, gradient_clip_val=1.0)
    trainer = fit(documents_tagger(criterion), data, 1, limit_val_batches=0)
    assert state(trainer)[1] == len(Synthetic(train=4, dev=1, test=1, unit="sentence").corpus("train"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MarginLoss(1.0, unit="document"), "MarginLoss: unit "),
        (lambda: HingeLoss(1.0, unit="x"), "HingeLoss: unit "),
        (lambda: LocalAndNonlocal(1.0, local_unit="x"), "LocalAndNonlocal: local_unit "),
        (lambda: LocalAndNonlocal(1.0, first="local", local_unit="sentence"), "local_unit sentence"),
        (lambda: documents_tagger(MarginLoss(1.0, unit="sentence")), "model.criterion.unit"),
    ],
)
def test_units_are_checked(make, message):
    with pytest.raises(InputError, match=message):
        make()


# -- the error of training -----------------------------------------------------------------------------------


def errors(tagger: Tagger, rows: EncodedCorpus, row: int) -> tuple[int, int]:
    """The wrong tokens of a sequence that are counted when it is learned by gradients, and then by its learner."""
    learner = sequence_learner(tagger, Additive(tagger.parameters()))
    tagger.training_method = GradientTraining(tagger)
    tagger.training_step(rows[[row]])
    return int(tagger.training_method.sums.counts[1]), learner.learn(rows.flat([row])).wrong


@pytest.mark.parametrize("unit", ["sequence", "sentence"])
def test_cost_is_not_counted_as_error(unit):
    data = Sentences([[("a", "O")] * 3, [("b", "B-PER")]])
    tagger = make_tagger(data, HingeLoss(1.0, unit), k=1, sparse_grad=True)
    rows = tagger.encode(data.corpus("train"))
    with torch.no_grad():
        for p in tagger.parameters():
            p.zero_()
        tagger.scorer.node[tagger.features.n_node_features - 1, tagger.labels.names.index("O")] = 0.6  # the bias
    assert tagger(rows[[0]]).unary[0, :, :2].tolist() == 3 * [pytest.approx([0.6, 0.0])]
    assert errors(tagger, rows, 0) == (0, 0)


class Costly(MarginLoss):
    """A user's margin, for candidates whose scores have costs."""

    cost = 1.0


@pytest.mark.parametrize(
    "criterion",
    [
        HingeLoss(1.0),
        HingeLoss(1.0, unit="sentence"),
        HingeLoss(SegmentCosts(missed=4.0)),
        Costly(5.0),
        LocalAndNonlocal(0.0, cost=2.0),
    ],
    ids=["3", "3s", "segments", "4.1", "4.2"],
)
def test_count_of_wrong_tokens(criterion):
    data = Synthetic(train=12, dev=1, test=1, unit="document")
    tagger = documents_tagger(
        criterion, () if isinstance(criterion, HingeLoss) else (PhraseConsistency, MajorityPhrase)
    )
    tagger.decoder = tagger.search
    tagger.build_vocabulary(data)
    rows, seen = tagger.encode(data.corpus("train")), 0
    torch.manual_seed(2)
    for row in range(len(rows)):
        with torch.no_grad():
            for p in tagger.parameters():
                p.normal_()
        batch = rows[[row]]
        wrong = int((tagger.decode(batch) != batch.gold).sum())
        by_gradients, online = errors(tagger, rows, row)
        assert by_gradients == wrong
        assert online == wrong or criterion.unit == "sentence"  # whose weights move from one sentence to the next
        seen += wrong
    assert seen > 50


# -- parts ---------------------------------------------------------------------------------------------------


@njit  # not cached: a cache would not see changes of what it calls
def wrong_rival(unary, edge, scores, gold, segments, labels, weights):
    memory = compiled_segments.segment_memory(len(gold), segments, weights)
    memory.edges[0], memory.rows[:] = edge, scores.reshape(-1, scores.shape[2])
    return compiled_segments.best_wrong_segmentation(unary, gold, segments, memory, labels)


@njit
def chain_rival(unary, edges, gold, exclude_gold, segments, labels, weights):
    memory = chain_memory(len(gold), segments, weights)
    memory.edges[:] = edges
    if exclude_gold:
        return best_wrong_path(unary, gold, segments, memory, labels)
    return best_path(unary, gold, segments, memory, labels)


def weight_tables(L, edges=0):
    """Weights of one feature, with features of edges if their number is above 0."""
    return WeightTables(*(np.zeros(shape, np.float32) for shape in ((1, L), (edges, L * L), (0, L), (0, 1))))


def test_wrong_rivals_of_segments_by_enumeration():
    random, D, T = np.random.default_rng(0), 4, 4
    table, kinds, begins = (
        torch.tensor([[1, 1, 2, 2], [0, 0, 0, 0]]),
        np.array([1, 0, 0]),
        np.array([True, True, False]),
    )
    own = {"ids": np.zeros(0, np.int32), "ends": np.zeros((D, T + 1), np.int64), "table": table.numpy()}
    segments = SegmentArrays(**own, kinds=kinds, begins=begins, candidates=np.ones((0, D, 1), bool))
    paths = [path for path in label_sequences(T, 3) if path[0] < 2 and (0, 2) not in pairwise(path)]  # O, B, I
    for _ in range(300):
        unary, edge, scores = (random.normal(size=shape).astype(np.float32) for shape in ((T, 3), (3, 3), (T, D, 1)))
        scores[:, :, 0] += np.arange(D)  # long rivals, also in place of several segments of gold
        gold, labels = random.integers(len(paths)), np.zeros(T, np.int64)
        tensors = torch.from_numpy(unary[None]), torch.from_numpy(edge[None, None]), torch.tensor([T])
        lattice = Lattice(*tensors, segments=SegmentScores(torch.from_numpy(scores[None]), table))
        totals = path_score(lattice, torch.tensor(paths)[None])[0]
        totals[gold] = -torch.inf
        assert wrong_rival(unary, edge, scores, np.array(paths[gold]), segments, labels, weight_tables(3))
        assert tuple(labels) == paths[int(totals.argmax())]


def test_rivals_by_enumeration():
    random, found = np.random.default_rng(0), 0
    for trial in range(1500):
        length, L = random.integers(1, 5), random.integers(1, 4)
        unary = random.integers(-1, 2, (length, L)).astype(np.float32)
        edges = random.integers(-1, 2, (length if trial % 2 else 1, L, L)).astype(np.float32)
        unary[random.random(unary.shape) < 0.1] = -np.inf
        edges[random.random(edges.shape) < 0.1] = -np.inf
        gold = random.integers(0, L, length)
        for other in (False, True):
            best, score = None, -np.inf
            for path in label_sequences(int(length), int(L)):
                total = sum(unary[t, path[t]] for t in range(length))
                total += sum(edges[t if trial % 2 else 0, path[t - 1], path[t]] for t in range(1, length))
                if total > score and not (other and path == tuple(gold)):
                    best, score = path, total
            labels = np.full(length, -1)
            weights = weight_tables(int(L), trial % 2)
            assert chain_rival(unary, edges, gold, other, None, labels, weights) == (best is not None)
            if best is not None:
                assert tuple(labels) == best
                found += 1
    assert found > 2000


class Halfway(PairwiseLoss):
    """A user's criterion, with an update when gold leads by less than half a margin."""

    threshold = 4.0

    @staticmethod
    def should_update(gap, threshold):
        return gap < threshold / 2


class Slower(Additive):
    """A user's optimizer, with shorter steps for large changes."""

    def step_size_rule(self, group):
        return StepSizeRule(_slower, (0.5,), needs_norm=True)


def _slower(loss, norm, most):
    return where(norm > 8, most / 2, most)


def test_own_rules_in_gradients_and_compiled_loop(monkeypatch):
    made = sentences(20)

    def train(size):
        data = Sentences(made, batch_size=size)
        tagger = make_tagger(data, Halfway(), Slower, sparse_grad=True)
        with torch.no_grad():
            for p in tagger.parameters():
                p.round_()
        trainer = fit(tagger, data, 2)
        assert size == 1 or isinstance(tagger.training_method.learner, OnlineLearner)
        return trainer

    compared(train, monkeypatch, exact=True)


@pytest.mark.parametrize("options", [{"gradient_clip_val": 0.5}, {"accumulate_grad_batches": 2}], ids=["clip", "sum"])
def test_criteria_with_batch_gradients(options):
    data = Sentences(sentences(20), batch_size=5)
    tagger = make_tagger(data, PerceptronLoss(), RAW, sparse_grad="gradient_clip_val" not in options)
    trainer = fit(tagger, data, 1, **options)
    assert isinstance(tagger.training_method, GradientTraining)
    assert trainer.optimizers[0].param_groups[0]["steps"] < 20


def test_divergence():
    data = Sentences(sentences(10), batch_size=5)
    with pytest.raises(DivergenceError, match="epoch 1"):
        fit(make_tagger(data, PerceptronLoss(), partial(Additive, lr=3e38), sparse_grad=True), data, 3)
