"""What every non-local feature of the package promises."""

import importlib
import inspect
import pkgutil

import pytest
import torch
from torch import Tensor

import structperc.nonlocal_features as package
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.nonlocal_features import (
    CandidateSegments,
    GlobalFeature,
    NonlocalFeature,
    PhraseConsistency,
)
from structperc.structures import Batch
from tests.errors import error_message
from tests.nonlocal_features.labelled import QUOTING, WORDS, Case, make_batch, make_case


def subclasses() -> list[type[NonlocalFeature]]:
    """All concrete features, found by walking the package; of global ones those with a template."""
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    classes = {cls for module in modules for _, cls in inspect.getmembers(module, inspect.isclass)}
    features = [cls for cls in classes if issubclass(cls, NonlocalFeature) and not inspect.isabstract(cls)]
    whole = [cls for cls in features if not issubclass(cls, GlobalFeature) or hasattr(cls, "template")]
    return sorted(whole, key=lambda cls: cls.__name__)


CLASSES = subclasses()
every = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
every_case = pytest.mark.parametrize(
    ("cls", "case"),
    [
        pytest.param(cls, (0, QUOTING if issubclass(cls, GlobalFeature) else WORDS), id=cls.__name__)
        for cls in CLASSES  # of documents of which one has no and one has one token
    ],
    indirect=["case"],
)


def made(cls: type[NonlocalFeature], case: Case) -> NonlocalFeature:
    """A feature that counts something in the case: a global one knows most of its strings."""
    feature = cls()
    feature.allocate(case.label_set)
    if isinstance(feature, GlobalFeature):
        feature.collect_lexicon(word for document in case.documents for sentence in document for word in sentence)
        keys = feature.occurrences(segments_of(case)).keys.unique()
        feature.set_vocabulary(keys[torch.rand(len(keys)) < 0.8])
    return feature


def ready(cls: type[NonlocalFeature], case: Case) -> NonlocalFeature:
    feature = made(cls, case)
    with torch.no_grad():
        feature.weight.copy_(torch.randint(-9, 10, feature.weight.shape))
    return feature


def segments_of(case: Case) -> CandidateSegments:
    return CandidateSegments(case.batch, case.labels, case.valid, case.label_set)


def row(batch: Batch, b: int, T: int) -> Batch:
    """One sequence of the batch, padded to T tokens."""
    cut = [x[b : b + 1] for x in (batch.lengths, batch.sentences, batch.first, batch.last, batch.rows)]
    lengths, sentences, first, last, rows = (x[:, :T] if x.dim() == 2 else x for x in cut)
    words = type(batch.words)(*(x[b : b + 1, :T] for x in batch.words))
    return batch._replace(lengths=lengths, sentences=sentences, first=first, last=last, rows=rows, words=words)


def test_the_walk_finds_the_features() -> None:
    assert len(CLASSES) == 20


@every
def test_export_and_options(cls: type[NonlocalFeature]) -> None:
    assert cls.__name__ in package.__all__
    feature = cls()
    options = {name: getattr(feature, name) for name in inspect.signature(cls).parameters}
    again = cls(**options)
    assert {name: getattr(again, name) for name in options} == options
    assert isinstance(cls.needs_documents, bool)
    learned = {"keys", "weight", "lexicon.words"} if isinstance(feature, GlobalFeature) else set()
    assert set(feature.state_dict()) <= learned  # nothing but weights is saved, and what they are the weights of


@every_case
def test_weights_start_at_zero_with_a_name_each(cls: type[NonlocalFeature], case: Case) -> None:
    feature = made(cls, case)
    names = feature.names(case.label_set.type_names)
    assert len(set(names)) == len(names) == len(feature.weight)
    assert feature.weight.dtype == torch.float32
    assert not feature.weight.any()
    assert feature.counts(segments_of(case)).shape == (case.valid.numel(), len(names))


@every_case
def test_scores_and_gradient(cls: type[NonlocalFeature], case: Case) -> None:
    feature = ready(cls, case)
    segments = segments_of(case)
    counts = feature.counts(segments).to_dense().unflatten(0, case.valid.shape)
    scores = feature(segments)
    naive = [
        [sum(n * w for n, w in zip(counts[b, k].tolist(), feature.weight.tolist(), strict=True)) for k in range(len(v))]
        for b, v in enumerate(case.valid)
    ]
    expected = torch.tensor(naive).view_as(scores).where(case.valid, 0)
    assert scores.dtype == torch.float32
    assert scores.equal(expected)

    pull = torch.randint(-3, 4, scores.shape).float()
    (gradient,) = torch.autograd.grad((scores * pull).sum(), feature.weight)
    assert gradient.equal((counts * (pull * case.valid).unsqueeze(2)).sum((0, 1)))


@every_case
def test_batches_equal_single_sequences(cls: type[NonlocalFeature], case: Case) -> None:
    feature = ready(cls, case)
    scores = feature(segments_of(case))
    for b, length in enumerate(case.batch.lengths.tolist()):
        alone = row(case.batch, b, length)
        labels, valid = case.labels[b : b + 1, :, :length], case.valid[b : b + 1]
        assert feature(CandidateSegments(alone, labels, valid, case.label_set)).equal(scores[b : b + 1])
        for k in range(min(5, labels.shape[1])):
            one = CandidateSegments(alone, labels[:, k : k + 1], valid[:, k : k + 1], case.label_set)
            assert feature(one).equal(scores[b : b + 1, k : k + 1])


@every_case
def test_autocast(cls: type[NonlocalFeature], case: Case) -> None:
    feature = ready(cls, case)
    with torch.no_grad():
        feature.weight += 1 / 3
    expected = feature(segments_of(case))
    with torch.autocast("cpu", torch.bfloat16):
        assert feature(segments_of(case)).equal(expected)


@every
def test_labels_without_segments(cls: type[NonlocalFeature]) -> None:
    with pytest.raises(InputError, match=f"^{cls.__name__} "):
        cls().allocate(LabelSet(("DT", "NN"), "none"))


@pytest.mark.usefixtures("way")
@every
def test_next_to_nothing(cls: type[NonlocalFeature]) -> None:
    for documents in ([], [[]], [[], []], [[["a"]]]):  # no text, or one or two without tokens, or one token
        batch = make_batch(documents)
        label_set = LabelSet(("O", "B-PER", "I-PER"))
        labels = torch.ones(*batch.sentences.shape, 3, dtype=torch.int64).transpose(1, 2)
        valid = torch.ones(len(documents), 3, dtype=torch.bool)
        case = Case(documents, batch, labels, valid, label_set)
        scores = ready(cls, case)(segments_of(case))
        assert scores.shape == valid.shape
        if not any(documents) or not issubclass(cls, GlobalFeature):  # which say something about one entity
            assert not scores.any()


@every_case
def test_nothing_is_valid(cls: type[NonlocalFeature], case: Case) -> None:
    none = case._replace(valid=torch.zeros_like(case.valid), labels=torch.full_like(case.labels, 999))
    assert not ready(cls, case)(segments_of(none)).any()


@every
def test_cuda_equals_cpu(cls: type[NonlocalFeature], cuda: torch.device) -> None:
    for seed in range(10):
        case = make_case(seed, QUOTING if issubclass(cls, GlobalFeature) else WORDS)
        feature = ready(cls, case)
        expected = feature(segments_of(case))
        batch = row(case.batch, 0, 0)._replace(  # of the same type, all parts replaced
            **{name: x.to(cuda) for name, x in case.batch._asdict().items() if isinstance(x, Tensor)},
            words=type(case.batch.words)(*(x.to(cuda) for x in case.batch.words)),
        )
        there = case._replace(batch=batch, labels=case.labels.to(cuda), valid=case.valid.to(cuda))
        assert feature.to(cuda)(segments_of(there)).cpu().equal(expected)


class Shaped(PhraseConsistency):
    """Returns what it is given."""

    answer: Tensor

    def counts(self, segments: CandidateSegments) -> Tensor:
        return self.answer


@pytest.mark.parametrize("shape", [(5, 6), (6, 5), (2, 3, 6), (36,)])
def test_wrong_shapes(shape: tuple[int, ...]) -> None:
    label_set = LabelSet(("O", "B-A", "I-A", "B-B", "I-B", "B-C", "I-C"))
    batch = make_batch([[["a"]], [["b"]]])
    segments = CandidateSegments(batch, torch.zeros(2, 3, 1, dtype=torch.int64), torch.ones(2, 3) > 0, label_set)
    feature = Shaped()
    feature.allocate(label_set)
    feature.answer = torch.zeros(6, 6)
    assert feature(segments).shape == (2, 3)
    feature.answer = torch.zeros(shape)
    assert error_message(feature, segments).startswith(f"Shaped.counts has shape {shape}, not (6, 6)")


@pytest.mark.parametrize("sparse", [Tensor.to_sparse, Tensor.to_sparse_csr], ids=["COO", "CSR"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_counts(case: Case, sparse: object) -> None:
    dense = ready(PhraseConsistency, case)
    feature = Shaped()
    feature.weight = dense.weight
    segments = segments_of(case)
    feature.answer = sparse(dense.counts(segments))
    scores, expected = feature(segments), dense(segments)
    assert scores.equal(expected)
    gradients = [torch.autograd.grad(x[:, 0].sum(), dense.weight)[0] for x in (scores, expected)]
    assert gradients[0].equal(gradients[1])
