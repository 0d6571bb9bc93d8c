"""Two processes give what one process with mini-batches twice as large gives, or, of learners that go from sequence to
sequence, the mixture of what each learned. This file is also what they run.
"""

import math
import os
import socket
import sys
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.utilities.rank_zero import rank_zero_only
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import CRFLoss, HingeLoss, LocalAndNonlocal, MCEFLoss, PerceptronLoss, Prior
from structperc.datamodules.distributed import (
    SINGLE_PROCESS,
    ProcessGroup,
    all_gather_objects,
    all_gather_tensors,
    all_reduce_gradients,
    all_reduce_max,
    all_reduce_sum,
    process_group,
    single_process,
)
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import MajorityPhrase, PhraseConsistency
from structperc.optim import LBFGS, PassiveAggressive, QuickProp
from structperc.optim import Perceptron as PerceptronSteps
from structperc.reranking.bayes_point import BayesPoint
from structperc.scorers import SparseLinear
from structperc.taggers.sequential_learning import sequence_learner
from structperc.taggers.tagger import Tagger
from structperc.training.run_callbacks import StopWhenConverged
from tests.forks import at_once, printing, run_file

ROOT = Path(__file__).parents[2]
ONLINE = ("perceptron", "nonlocal", "passive-aggressive")
EXACT, CLOSE = {"rtol": 0.0, "atol": 0.0}, {"rtol": 1e-4, "atol": 1e-5}
CASES = {  # criterion, optimizer, length of lists, options of scorer, tagger and data, tolerance
    "perceptron": (PerceptronLoss(), PerceptronSteps, 1, {}, {}, {}, EXACT),
    "nonlocal": (LocalAndNonlocal(5), PerceptronSteps, 5, {}, {"nonlocal_features": 1}, {}, EXACT),
    "passive-aggressive": (HingeLoss(), PassiveAggressive, 1, {}, {}, {}, CLOSE),
    "sgd": (CRFLoss(), lambda p: torch.optim.SGD(p, lr=0.01), 1, {}, {}, {}, CLOSE),
    "adam": (CRFLoss(), lambda p: torch.optim.Adam(p, lr=0.1), 1, {"sparse_grad": False}, {"prior": 1}, {}, CLOSE),
    "l-bfgs": (CRFLoss(), LBFGS, 1, {"sparse_grad": False}, {"prior": 1}, {"shuffle": False}, CLOSE),
    "mce-f": (MCEFLoss(), lambda p: QuickProp(p, lr=0.5), 2, {"sparse_grad": False}, {}, {"shuffle": False}, CLOSE),
}


class Start(pl.Callback):
    """Remembers the weights that training starts from."""

    def on_train_start(self, trainer, pl_module):
        self.weights = {name: p.detach().clone() for name, p in pl_module.named_parameters()}


class Unequal(pl.Callback):
    """Starts from weights without ties, which sums in another order would decide in another way."""

    def on_train_start(self, trainer, pl_module):
        draw = torch.Generator().manual_seed(0)
        for p in pl_module.parameters():
            p.data.normal_(generator=draw)


def build(case, batch_size):
    criterion, optimizer, k, scoring, more, reading, _ = CASES[case]
    more = {**more, "prior": Prior(1.0)} if "prior" in more else more
    more = (
        {**more, "nonlocal_features": [PhraseConsistency(), MajorityPhrase()]} if "nonlocal_features" in more else more
    )
    size = {"train": 15, "dev": 7, "test": 1, "batch_size": batch_size, "eval_batch_size": batch_size}
    features = FeatureExtractor(node=["bias", {"of": ["w"], "at": [-1, 0, 1]}], edge=["bias"], progress=False)
    tagger = Tagger(features, SparseLinear(**scoring), criterion, KBest(k), optimizer, decoder=KBest(k), **more)
    return tagger, Synthetic(unit="document", **{**size, **reading})


def trainer_of(devices, epochs, *callbacks):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    kind = {"strategy": "ddp"} if devices > 1 else {}
    limits = {"max_epochs": epochs, "accelerator": "cpu", "devices": devices, "enable_model_summary": False}
    return pl.Trainer(callbacks=list(callbacks), **limits, **quiet, **kind)


def trained(case, devices):
    """What is learned, what is logged, and the counts of the development data."""
    tagger, data = build(case, 4 // devices)
    starts = [Unequal()] if case == "mce-f" else []
    epochs = 3 if case in ONLINE else 2
    trainer = trainer_of(devices, epochs, StopWhenConverged(threshold=0.1, patience=1), *starts)
    trainer.fit(tagger, datamodule=data)
    if online := hasattr(trainer.optimizers[0], "use_training_weights"):
        trainer.optimizers[0].use_training_weights()
    weights = {f"raw {name}": p.detach().clone() for name, p in tagger.named_parameters()}
    if online:
        trainer.optimizers[0].use_evaluation_weights()
        weights |= {f"served {name}": p.detach().clone() for name, p in tagger.named_parameters()}
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    return weights, logged, trainer.current_epoch, tagger.evaluation.table()


def mixture(case, epochs):
    """Raw and served weights of two learners that take turns in one process: the last and the mean of all mixtures."""
    tagger, data = build(case, 2)
    tagger.build_vocabulary(data)
    learner = sequence_learner(tagger, tagger.optimizer(tagger.parameters()))
    rows = tagger.encode(data.corpus("train"))
    orders = [
        LengthBatchSampler(rows.corpus.lengths, 2, True, data.seed, ProcessGroup(process, 2), by_length=False)
        for process in range(2)
    ]
    weights, mixtures = parameters_to_vector(tagger.parameters()).detach(), []
    for epoch in range(epochs):
        for order in orders:
            order.set_epoch(epoch)
        for batches in zip(*(between_mixtures(order, math.ceil(8 / (1 + epoch))) for order in orders), strict=True):
            steps = max(len(batch) for batch in batches)
            if steps == 0:
                continue
            paths = torch.stack([path(tagger, learner, weights, rows, batch, steps) for batch in batches])
            movers = (paths != weights).any(1).sum(0)  # not only those that end where they do not begin
            mixtures.append(weights + (paths.double() - weights).sum(0) / movers.clamp(min=1))
            weights = mixtures[-1][-1].float()
    found = {"raw": weights, "served": torch.cat(mixtures).mean(0).float()}
    return {f"{kind} {name}": p for kind, x in found.items() for name, p in named(tagger, x).items()}


def between_mixtures(order, times):
    """What is learned until the next mixture: they are at even distances in an epoch, and within a mini-batch."""
    batches, found, under_way = list(order), [], []
    for i, batch in enumerate(batches):
        ends = [m for m in range(1, times + 1) if i < math.ceil(m * len(batches) / times) <= i + 1]
        parts = min(max(1, len(ends)), len(batch))
        cut = [batch[p * len(batch) // parts : (p + 1) * len(batch) // parts] for p in range(parts)]
        for part in [*cut, *[[]] * (len(ends) - len(cut))]:
            under_way += part
            if ends:
                found.append(under_way)
                under_way = []
    assert not under_way
    return found


def path(tagger, learner, weights, rows, batch, steps):
    """All weights (steps, n) of a learner after each of its sequences, the last ones again when it has no more."""
    vector_to_parameters(weights.clone(), tagger.parameters())
    after = []
    for row in batch:
        learner.learn(rows.flat([row]))
        after.append(parameters_to_vector(tagger.parameters()).detach())
    return torch.stack([*after, *[after[-1] if after else weights] * (steps - len(after))])


def named(tagger, vector):
    vector_to_parameters(vector.clone(), tagger.parameters())
    return {name: p.detach().clone() for name, p in tagger.named_parameters()}


def bayes_start(devices):
    """Where training starts after passes over all data in mini-batches of one process."""
    start = Start()
    tagger, data = build("perceptron", 2)
    trainer_of(devices, 1, BayesPoint(passes=2), start).fit(tagger, datamodule=data)
    return start.weights


def refused():
    tagger, data = build("mce-f", 2)
    tagger.optimizer = lambda p: torch.optim.SGD(p, lr=0.1)
    try:
        trainer_of(2, 1).fit(tagger, datamodule=data)
    except InputError as error:
        return str(error)
    return "nothing"


def gradients(process):
    """Dense, sparse, sparse of one process, none, dense of one and sparse of the other, without gradients."""
    made = [torch.nn.Parameter(torch.zeros(2, 3)) for _ in range(5)]
    made[0].grad = torch.full((2, 3), 1.0 + process)
    made[1].grad = torch.sparse_coo_tensor([[1, process], [2, 0]], [1.0, 10.0], (2, 3))
    if process == 1:
        made[2].grad = torch.sparse_coo_tensor([[1]], [[4.0, 5.0, 6.0]], (2, 3))
    made[4].grad = torch.ones(2, 3) if process else torch.sparse_coo_tensor([[0], [0]], [2.0], (2, 3))
    all_reduce_gradients([*made, torch.zeros(1)])
    return [None if p.grad is None else p.grad.to_dense() for p in made]


def work(process, folder):
    results = {"cases": {case: trained(case, 2) for case in CASES}}
    results |= {"start": bayes_start(2), "refused": refused(), "gradients": gradients(process)}
    results["group"] = tuple(process_group())
    results["all_reduce_sum"] = float(all_reduce_sum(torch.tensor(1.0 + process)))
    results["all_gather_objects"] = all_gather_objects(["ab", "c"][process])
    results["all_reduce_max"] = float(all_reduce_max(torch.tensor(1.0 - process)))
    results["all_gather_tensors"] = [x.tolist() for x in all_gather_tensors(torch.full((3 * process,), 4))]
    with single_process():
        results["single_process"] = (
            process_group() == SINGLE_PROCESS and float(all_reduce_sum(torch.tensor(1.0 + process))) == 1 + process
        )
    torch.save(results, folder / f"{process}.pt")
    dist.barrier()


def ranks(*arguments):
    """Arguments and environment of two processes that meet."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "NODE_RANK": "0"}
    return [(list(map(str, arguments)), {"LOCAL_RANK": rank, **meeting}) for rank in "01"]


@pytest.fixture(scope="module")
def two(fork_server, tmp_path_factory):
    """What each of two processes found."""
    if not dist.is_gloo_available():
        pytest.skip("torch is built without gloo")
    folder = tmp_path_factory.mktemp("two")
    assert fork_server(folder / "log", at_once, __file__, *ranks(folder)).status == 0, (folder / "log").read_text()
    return [torch.load(folder / f"{process}.pt", weights_only=False) for process in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("case", ONLINE)
def test_parameter_averaging_of_two_processes(case, two):
    theirs, logged, epochs, _ = two[0]["cases"][case]
    torch.testing.assert_close(theirs, mixture(case, epochs), **CLOSE)
    assert any(w.any() for w in theirs.values())
    torch.testing.assert_close(two[1]["cases"][case][0], theirs, **EXACT)
    assert two[1]["cases"][case][1] == pytest.approx(logged, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in ONLINE])
def test_two_processes_equal_one(case, two):
    tolerance = CASES[case][-1]
    weights, logged, epochs, table = trained(case, 1)
    assert any(name.startswith("served") for name in weights) or CASES[case][1] is not LBFGS
    assert any(w.any() for w in weights.values())
    for found in two:
        theirs, also_logged, also_epochs, also_table = found["cases"][case]
        torch.testing.assert_close(theirs, weights, **tolerance)
        assert also_logged == pytest.approx(logged, rel=1e-4, nan_ok=True)
        assert also_epochs == epochs
        assert also_table == table
    torch.testing.assert_close(two[0]["cases"][case][0], two[1]["cases"][case][0], **EXACT)


@pytest.mark.slow
def test_tables_count_every_token_once(two):
    _, data = build("perceptron", 2)
    tokens = data.corpus("dev").tokens
    assert f"processed {tokens} tokens" in two[0]["cases"]["perceptron"][3]


@pytest.mark.slow
def test_bayes_point_of_all_data(two):
    expected = bayes_start(1)
    assert any(w.any() for w in expected.values())
    for found in two:
        torch.testing.assert_close(found["start"], expected, **EXACT)


@pytest.mark.slow
def test_counts_of_recent_batches_are_refused(two):
    for found in two:
        assert found["refused"].startswith("MCEFLoss does not support several processes")


@pytest.mark.slow
def test_sum_of_gradients(two):
    dense = torch.full((2, 3), 3.0)
    sparse = torch.tensor([[10.0, 0, 0], [10, 0, 2]])
    rows = torch.tensor([[0.0, 0, 0], [4, 5, 6]])
    mixed = torch.tensor([[3.0, 1, 1], [1, 1, 1]])
    for found in two:
        torch.testing.assert_close(found["gradients"], [dense, sparse, rows, None, mixed], **EXACT)


@pytest.mark.slow
def test_shares_of_processes(two):
    assert [found["group"] for found in two] == [(0, 2), (1, 2)]
    assert [found["all_reduce_sum"] for found in two] == [3, 3]
    assert [found["all_gather_objects"] for found in two] == [["a", "b", "c"]] * 2
    assert [found["all_reduce_max"] for found in two] == [1, 1]
    assert [found["all_gather_tensors"] for found in two] == [[[], [4, 4, 4]]] * 2
    assert all(found["single_process"] for found in two)


def test_one_process_sums_nothing():
    x = torch.ones(2, requires_grad=True)
    assert all_reduce_sum(x) is x
    assert all_gather_objects(iter([1, 2])) == [1, 2]
    assert all_gather_tensors(x)[0] is x
    assert all_reduce_max(x) is x
    assert process_group() == SINGLE_PROCESS


# -- the program ---------------------------------------------------------------------------------------------


def two_of(command, root, *options):
    """The arguments of a command for two processes."""
    quickstart = ROOT / "configs" / "quickstart.yaml"
    small = ["--data.train=14", "--data.dev=7", "--data.test=5", "--data.batch_size=2"]
    quiet = ["--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"]
    two = ["--trainer.devices=2", "--trainer.strategy=ddp", "--trainer.accelerator=cpu"]
    return [command, "-c", str(quickstart), f"--trainer.default_root_dir={root}", *small, *quiet, *options, *two]


@pytest.fixture
def launched(fork_server, tmp_path):
    """Runs a command that starts its second process itself, a new interpreter; -> what both printed."""

    def launched(*arguments):
        out, log = tmp_path / "launched", tmp_path / "log"
        main_file, paths = ROOT / "structperc" / "__main__.py", os.pathsep.join(filter(None, sys.path))
        given = str(main_file), list(map(str, two_of(*arguments))), {"PYTHONPATH": paths}
        assert fork_server(log, printing, out, run_file, *given).status == 0, log.read_text()
        return out.read_text() + log.read_text()

    return launched


@pytest.fixture
def program(fork_server, tmp_path):
    """Runs a command in two processes; -> what both printed."""

    def program(*arguments):
        out, log = tmp_path / "printed", tmp_path / "log"
        ended = fork_server(log, printing, out, at_once, __file__, *ranks(*two_of(*arguments)))
        assert ended.status == 0, log.read_text()
        return out.read_text()

    return program


@pytest.mark.slow
def test_the_program_on_two_processes(program, launched, tmp_path):
    """A resumed run of two processes leaves what an uninterrupted one leaves, once."""
    program("fit", tmp_path / "two", "--trainer.max_epochs=1")
    printed = program("fit", tmp_path / "two", "--trainer.max_epochs=2", "--ckpt_path=last")
    whole = launched("fit", tmp_path / "whole", "--trainer.max_epochs=2")
    assert [p.name for p in (tmp_path / "two").iterdir()] == ["1"]
    theirs, own = tmp_path / "two" / "1", tmp_path / "whole" / "1"
    for file in ("model/model.safetensors", "model/model.json", "predictions/dev.conll", "predictions/test.conll"):
        assert (theirs / file).read_bytes() == (own / file).read_bytes()
    tables = whole[: whole.index("2 epochs,")]
    assert tables.count("sentence accuracy:") == 2
    assert printed[: printed.index("2 epochs,")] == tables
    assert printed.count("model: ") == 1
    left = {str(p.relative_to(theirs)) for p in theirs.rglob("*") if p.is_file() and "logs" not in p.parts}
    assert left == {str(p.relative_to(own)) for p in own.rglob("*") if p.is_file() and "logs" not in p.parts}

    (theirs / "predictions" / "dev.conll").unlink()
    program("predict", tmp_path / "two", "--ckpt_path=best")
    assert (theirs / "predictions" / "dev.conll").read_bytes() == (own / "predictions" / "dev.conll").read_bytes()


STUDY = "pkg:studies/embedded#"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["fit", "-c", STUDY + "guided"], "GuidedTagger cannot be trained by several processes: "),
        (["rerank", "-c", STUDY + "reranking1"], "Reranker cannot be trained by several processes: "),
        (["fit", "-c", STUDY + "margin", "--trainer.strategy=ddp_spawn"], "trainer.strategy: "),
    ],
    ids=["guided", "re-ranker", "spawned"],
)
def test_invalid_strategies(arguments, complaint, fails, tmp_path):
    root = f"--trainer.default_root_dir={tmp_path}"
    assert complaint in fails(*arguments, root, "--trainer.devices=2", "--trainer.accelerator=cpu")
    assert not list(tmp_path.iterdir())


if __name__ == "__main__":
    rank_zero_only.rank = int(os.environ["LOCAL_RANK"])  # as Lightning, which is imported by now, does when it is
    if len(sys.argv) > 2:
        sys.exit(main())
    work(rank_zero_only.rank, Path(sys.argv[1]))
