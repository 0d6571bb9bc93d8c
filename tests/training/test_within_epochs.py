"""Runs that end within an epoch, or save there, go on with what is left of it, bit for bit."""

from itertools import islice

import pytest
from torch.utils.data import DistributedSampler

from structperc.cli.main import main
from structperc.datamodules.sampler import ResumableLoader, ResumableSampler
from structperc.errors import InputError
from tests.checkpoints import assert_same_training, checkpoint

SMALL = ["--data.train=4", "--data.unit=sentence", "--data.batch_size=8", "--trainer.max_epochs=2"]
CRITERIA, OPTIM = "structperc.criteria.", "structperc.optim."
LIKELIHOOD = f"--model.criterion={CRITERIA}CRFLoss"
LEARNERS = {
    "online": [],
    "by number of tokens, evaluated within epochs": [
        *("--data.batch_size=null", "--data.batch_tokens=60", "--trainer.val_check_interval=2"),
        *(LIKELIHOOD, "--model.optimizer=torch.optim.SGD", "--model.optimizer.lr=0.1"),
    ],
}


@pytest.mark.parametrize("name", LEARNERS)
def test_resumed_after_max_steps(name, runs, recwarn):
    """Within the first epoch, then within the second."""
    options = [*SMALL, *LEARNERS[name]]
    assert runs("fit", *options) == 0
    steps = checkpoint(runs.root / "1")["global_step"] // 2
    assert steps > 4
    assert runs("fit", *options, "--trainer.max_steps=3") == 0
    assert runs("fit", *options, f"--trainer.max_steps={steps + 2}", "--ckpt_path=last") == 0
    assert runs("fit", *options, "--ckpt_path=last") == 0
    assert_same_training(runs.root / "2", runs.root / "1")
    assert not [one for one in recwarn if "monitored key" in str(one.message)]  # an epoch cut short has no score


def test_guided_learning_is_resumed(runs):
    guided = ["fit", "-c", "pkg:studies/embedded#guided", f"--trainer.default_root_dir={runs.root}", *SMALL]
    for options in ([], ["--trainer.max_steps=3"], ["--ckpt_path=last"]):
        assert main([*guided, *options]) == 0
    assert_same_training(runs.root / "2", runs.root / "1")


def test_full_batches_are_not_divided(runs, fails, tmp_path):
    options = [*SMALL, LIKELIHOOD, f"--model.optimizer={OPTIM}LBFGS"]
    options += ["--data.shuffle=false", "--model.scorer.init_args.sparse_grad=false"]
    given = ["--checkpoint.every_n_train_steps=2", "--checkpoint.monitor=null", "--trainer.max_epochs=1"]
    assert runs("fit", *options, *given) == 0
    message = fails(*runs.arguments("fit", *options, f"--ckpt_path={runs.root / '1' / 'checkpoints' / 'best.ckpt'}"))
    assert "checkpoint was saved in the middle of an epoch" in message


def loader(items=5):
    order = DistributedSampler(range(items), num_replicas=1, rank=0, shuffle=True, seed=3)
    return ResumableLoader(range(items), batch_size=None, sampler=ResumableSampler(order))


def test_rest_of_an_epoch():
    whole = loader()
    orders = [whole.sampler.set_epoch(epoch) or list(whole) for epoch in range(3)]
    begun = loader()
    begun.sampler.set_epoch(1)
    assert list(islice(begun, 2)) == orders[1][:2]
    assert begun.state_dict() == {"epoch": 1, "seen": 2, "steps": 5}
    rest = loader()
    rest.load_state_dict(begun.state_dict())
    assert [rest.sampler.set_epoch(epoch) or list(rest) for epoch in range(3)] == [orders[0], orders[1][2:], orders[2]]
    assert len(rest) == 5
    other = loader(6)
    other.load_state_dict(begun.state_dict())
    other.sampler.set_epoch(1)
    with pytest.raises(InputError, match=r"5 mini-batches.* 6"):
        next(iter(other))


@pytest.mark.parametrize("state", [None, {}, {"epoch": 0, "seen": -1, "steps": 2}, {"epoch": 0, "seen": "1"}])
def test_other_states_are_refused(state):
    with pytest.raises(InputError, match="mini-batches seen"):
        loader().load_state_dict(state)
