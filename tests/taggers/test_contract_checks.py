"""Own parts that break their contract are named with file, line and what to change, at their first call."""

import importlib
import json

import pytest
import torch
from torch import nn

from structperc.chain import KBest
from structperc.cli.messages import report_error
from structperc.constructors import parameters_of
from structperc.criteria import CRFLoss, Criterion, HingeLoss, LocalAndNonlocal, PerceptronLoss
from structperc.criteria.base import CandidateLoss, Decision
from structperc.encoders import Encoder
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim.averaged_perceptron import AveragedOptimizer, StepSizeRule
from structperc.scorers import Neural, SparseLinear
from structperc.structures import Lattice
from structperc.taggers.contract_checks import check_contracts, check_options, check_step_size_rule
from structperc.taggers.tagger import Tagger
from structperc.user_code import class_location, error_location, is_user_class
from tests.errors import error_message
from tests.tiny import Sentences, make_tagger, sentences

DATA = Sentences(sentences(5))
FILE = __file__.rpartition("/")[2]


def step(tagger):
    """A step of training in which own parts are checked; -> its loss."""
    check_contracts(tagger, len(tagger.labels))
    (batch,) = tagger.batches(DATA.corpus("train"))
    return tagger.training_step(batch)


class Returns(Criterion):
    """Gives what `make` makes of gold's scores."""

    min_candidates = 0

    def __init__(self, make):
        super().__init__()
        self.make = make

    def losses_and_updates(self, scored):
        return self.make(-scored.gold_scores, torch.ones(len(scored.gold), dtype=torch.bool))


WRONG = {
    "a sum": (lambda losses, updates: (losses.sum(), updates), "losses of shape (5,)"),
    "nothing": (lambda losses, updates: None, "two tensors"),
    "a short mask": (lambda losses, updates: (losses, updates[:1]), "shape (5,)"),
    "a mask of numbers": (lambda losses, updates: (losses, updates.float()), "as bool"),
    "whole numbers": (lambda losses, updates: (losses.long(), updates), "floating-point"),
    "NaN": (lambda losses, updates: (losses * float("nan"), updates), "NaN losses"),
    "no gradients": (lambda losses, updates: (losses.detach(), updates), "without gradients"),
}


@pytest.mark.parametrize(("make", "words"), WRONG.values(), ids=WRONG)
def test_invalid_losses_and_updates(make, words):
    said = error_message(step, make_tagger(DATA, Returns(make), k=1))
    assert words in said
    line = Returns.losses_and_updates.__code__.co_firstlineno
    assert f"Returns.losses_and_updates ({class_location(Returns).partition('(')[2].partition(':')[0]}:{line})" in said
    assert FILE in said


def test_check_runs_once():
    tagger = make_tagger(DATA, Returns(lambda losses, updates: (losses, updates)), k=1)
    step(tagger)
    assert "losses_and_updates" not in vars(tagger.criterion)
    library = make_tagger(DATA, CRFLoss(), k=1)
    before = [set(vars(part)) for part in library.modules()]
    check_contracts(library, len(library.labels))
    assert [set(vars(part)) for part in library.modules()] == before


class Asks(PerceptronLoss):
    @staticmethod
    def should_update(gap, threshold):
        return 1.0 * (gap <= 0)


class Reads(CRFLoss):
    def transform_lattice(self, lattice):
        return lattice.unary


class Augments(CRFLoss):
    min_candidates = 1

    def augment(self, lattice, gold):
        return lattice._replace(unary=lattice.unary[:, :, 1:])


class Decides(CandidateLoss):
    def decide(self, scored):
        far = torch.full((len(scored.gold),), 99)
        return Decision(far, far > 0, far > 0)


class Narrow(SparseLinear):
    def forward(self, batch):
        lattice = super().forward(batch)
        return Lattice(lattice.unary[:, :, 1:], lattice.edge, lattice.lengths)


class Padded(Encoder):
    """Vectors of ones, also in the padding."""

    n_inputs, width = 0, 2

    def encode_inputs(self, corpus):
        return []

    def forward(self, batch):
        return torch.ones(*batch.sentences.shape, 2)


class Searches(KBest):
    def forward(self, lattice):
        found = super().forward(lattice)
        return found._replace(labels=found.labels[:, 0])


class Counts(NonlocalFeature):
    def __init__(self, kind: str = "shape") -> None:
        super().__init__()
        self.kind = kind

    def names(self, types):
        return ["same"] * len(types) if self.kind == "twice" else [f"count({kind})" for kind in types]

    def counts(self, segments):
        shape = segments.valid.numel(), len(self.weight)
        if self.kind == "shape":
            return torch.ones(segments.valid.shape)
        return torch.full(shape, torch.nan)


def tagger_of(criterion=None, scorer=None, search=None, **options):
    made = make_tagger(DATA, CRFLoss())
    tagger = Tagger(
        made.features, scorer or SparseLinear(), criterion or PerceptronLoss(), search or KBest(2), **options
    )
    tagger.allocate(made.labels)
    return tagger


@pytest.mark.parametrize(
    ("options", "method", "words"),
    [
        ({"criterion": Asks()}, "Asks.should_update", "not 0.0"),
        ({"criterion": Reads()}, "Reads.transform_lattice", "a Lattice"),
        ({"criterion": Augments()}, "Augments.augment", "shape (5, "),
        ({"criterion": Decides()}, "Decides.decide", "from 0 to 1"),
        ({"scorer": Narrow()}, "Narrow.forward", "unary scores"),
        ({"scorer": Neural(Padded())}, "Padded.forward", "padding"),
        ({"search": Searches(2)}, "Searches.forward", "labels (5, K, "),
        ({"nonlocal_features": [Counts("shape")]}, "Counts.counts", "of shape (15, 2)"),
        ({"nonlocal_features": [Counts("NaN")]}, "Counts.counts", "NaN counts"),
    ],
)
def test_invalid_results_of_parts(options, method, words):
    said = error_message(step, tagger_of(**options))
    assert f".{method} (" in said
    assert words in said


def test_names_of_counts_come_once():
    with pytest.raises(InputError, match=r"Counts\.names .*'same'"):
        tagger_of(nonlocal_features=[Counts("twice")])


class Steps(AveragedOptimizer):
    def __init__(self, params, size):
        super().__init__(params, {}, True)
        self.size = size

    def step_size_rule(self, group):
        return StepSizeRule(self.size)


def test_step_sizes_of_an_optimizer_are_finite():
    weights = [nn.Parameter(torch.zeros(2))]
    check_step_size_rule(Steps(weights, lambda loss, norm: loss / norm))
    with pytest.raises(InputError, match=r"Steps\.step_size_rule .*nan"):
        check_step_size_rule(Steps(weights, lambda loss, norm: float("nan")))


def test_losses_with_other_methods_are_not_compiled():
    for base, name in ((PerceptronLoss, "decide"), (LocalAndNonlocal, "losses_and_updates"), (CRFLoss, "weighted")):
        own = type("Own", (base,), {name: lambda self, *given: None})
        options = [1.0] if base is LocalAndNonlocal else []
        assert own(*options).compiled_loss() is None
        assert base(*options).compiled_loss() is not None


# -- options --------------------------------------------------------------------------------------------------


class Lost(CRFLoss):
    def __init__(self, beta: float = 1.0):
        super().__init__()
        self.other = beta


class Changed(HingeLoss):
    def __init__(self, cost: float = 1.0):
        super().__init__(cost=2 * cost)


class Fixed(HingeLoss):
    def __init__(self, beta: float = 1.0, **options):
        super().__init__(cost=3.0, **options)
        self.beta = beta


class Plain(CRFLoss):
    def __init__(self, beta=None):
        super().__init__()
        self.beta = torch.ones(1)


class Further(HingeLoss):
    def __init__(self, beta: float = 1.0, **options):
        super().__init__(**options)
        self.beta = beta


class LostAttribute(DocumentAttribute):
    def __init__(self, n: int = 1):
        pass

    def transform(self, corpus, lookup):
        return list(corpus.columns["word"])


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        (Lost(), "self.beta = beta"),
        (Changed(2.0), "option cost is 4.0"),
        (Fixed(), "multiple values for keyword argument 'cost'"),
        (Plain(), "JSON"),
    ],
    ids=type,
)
def test_options_that_cannot_be_saved(criterion, words):
    found = error_message(check_options, make_tagger(DATA, criterion), FeatureExtractor(progress=False))
    assert words in found
    assert f"{type(criterion).__name__} (" in found


def test_options_of_document_attributes():
    features = FeatureExtractor(["own[0]"], documents={"own": LostAttribute()}, progress=False)
    with pytest.raises(InputError, match=r"LostAttribute .* self\.n = n"):
        check_options(make_tagger(DATA, CRFLoss()), features)


def test_options_passed_on(tmp_path):
    tagger = make_tagger(DATA, Further(beta=2.0, cost=5.0, unit="sentence"))
    check_options(tagger, tagger.features)
    assert list(parameters_of(Further)) == ["beta", *parameters_of(HingeLoss)]
    tagger.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model", trusted=[__name__]).criterion
    assert (again.beta, again.cost, again.unit) == (2.0, 5.0, "sentence")


def test_classes_of_users():
    assert is_user_class(Further)
    assert not any(map(is_user_class, (HingeLoss, nn.Linear, torch.optim.SGD, dict)))


# -- failures -------------------------------------------------------------------------------------------------

OWN = """
def fails(values):
    return values["none"]

def library(values):
    from structperc.chain import KBest
    return KBest(values["k"])
"""


def said_of(call, capsys) -> tuple[int, str]:
    """Exit status and complaint of a command that `call` ends."""
    try:
        call()
    except Exception as error:
        status = report_error(error)
    return status, capsys.readouterr().err


def test_failures_of_a_users_code_have_their_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "failing.py").write_text(OWN)
    (tmp_path / "unfinished.py").write_text("def broken(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    failing = importlib.import_module("failing")
    status, line = said_of(lambda: failing.fails({}), capsys)
    assert (status, line.count("\n")) == (2, 1)
    assert "failing.py:3, in fails: KeyError: 'none'" in line
    status, line = said_of(lambda: failing.library({"k": "2"}), capsys)  # the library fails, at her call
    assert status == 2
    assert "failing.py:7, in library: TypeError" in line
    status, line = said_of(lambda: importlib.import_module("unfinished"), capsys)
    assert "unfinished.py:1: SyntaxError" in line


def test_failures_of_the_library_are_unexpected(tmp_path):
    """Where no code of a user was running; her code calls the library and is above it in other tests."""
    try:
        json.loads("{")
    except ValueError as error:
        inner = error.with_traceback(error.__traceback__.tb_next)  # without this file
    assert error_location(inner) is None
