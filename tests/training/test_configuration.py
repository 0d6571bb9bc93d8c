"""Configuration files and options: what cannot be meant is one line that names file, line and option."""

from pathlib import Path

import pytest
import yaml

from structperc.errors import InputError
from structperc.experiments.experiment import dry_run

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Refuses an overlay (text or bytes) or options on top of the quickstart; -> the line of complaint."""
    monkeypatch.chdir(tmp_path)

    def refused(*options, overlay=None):
        if overlay is not None:
            Path("o.yaml").write_bytes(overlay if isinstance(overlay, bytes) else overlay.encode())
            options = ("-c", "o.yaml", *options)
        with pytest.raises(InputError) as error:
            dry_run(["-c", str(QUICKSTART), *options])
        assert "\n" not in str(error.value)
        return str(error.value)

    return refused


SECRET = "a-line-of-the-file"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (f"Anna B-PER\n{SECRET} O\n", "o.yaml: "),
        ("# nothing but a comment\n", "o.yaml: "),
        (bytes(range(128, 256)), "o.yaml:1: byte 0x80"),
        ("trainer:\n  max_epochs: [1, 2\nseed_everything: 3\n", "o.yaml:3: expected ',' or ']'"),
        ("trainer:\n  max_epochs: 1\n  max_epochs: 2\n", "o.yaml:3: "),
        ("a: 1\nb:\n  c: !!python/object/apply:os.system [echo]\n", "o.yaml:3: "),
    ],
)
def test_other_files(refused, content, complaint):
    line = refused(overlay=content)
    assert line.startswith(complaint)
    assert SECRET not in line


@pytest.mark.parametrize("place", [(), ("trainer",), ("model", "search", "init_args")], ids=".".join)
def test_unknown_keys(refused, place):
    config = yaml.safe_load(QUICKSTART.read_text())
    inner = config
    for key in place:
        inner = inner[key]
    inner["unknown"] = {}
    Path("whole.yaml").write_text(yaml.safe_dump(config))
    line = refused("-c", "whole.yaml")
    assert line.startswith("whole.yaml:")
    assert "unknown" in line


@pytest.mark.parametrize(
    ("overlay", "complaint"),
    [
        ("trainer:\n  max_epoch: 3", "o.yaml:2: trainer.max_epoch: "),
        ("trainer: [1]", "trainer: "),
        ("model:\n  search: {class_path: structperc.chain.KBest, init_arg: {k: 3}}", "o.yaml:2: model.search: "),
        (
            "model:\n  nonlocal_features: [{class_path: structperc.nonlocal_features.Majority, x: 3}]",
            "o.yaml:2: model.nonlocal_features.0: ",
        ),
        ("model:\n  criterion: MarginLoss", "o.yaml:2: model.criterion: structperc.criteria.MarginLoss"),
        ("model:\n  optimizer: {class_path: os.getcwd}", "model.optimizer: os.getcwd "),
        ("model:\n  criterion: {class_path: structperc.criteria.Criterion}", " is abstract; use a subclass of it"),
        ("model: {search: {class_path: [a]}}", "o.yaml:1: model.search: class_path"),
        ("model: {search: {init_args: 3}}", "o.yaml:1: model.search.init_args: "),
        ("data:\n  init_args: {eval_batch_size: null}", "o.yaml:2: data.eval_batch_size: "),
        ("0: 1", "o.yaml:1: 0: "),
        ("trainer:\n  1: 2", "o.yaml:2: trainer.1: "),
        ("data:\n  types: {PER: A,\n    NO: B}", "data.types.False: expected a str"),
        (
            "trainer:\n  callbacks: [{class_path: GradientAccumulationScheduler, init_args: {scheduling: {a: 2}}}]",
            "o.yaml:2: trainer.callbacks.0.scheduling.a: expected a int",
        ),
    ],
)
def test_errors_name_file_and_line(refused, overlay, complaint):
    assert complaint in refused(overlay=overlay)


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--trainer.max_epoch=3", "trainer.max_epoch: "),
        ("--trainer.max_epochs=many", "trainer.max_epochs: "),
        ("--model.search.k=null", "model.search.k: "),
        ("--lr_scheduler=StepLR", "lr_scheduler: "),
        ("--data.types={PER: A, PER: B}", "data.types: "),
        ("quickstart", "quickstart is not an option; write -c pkg:quickstart"),
        (__file__, f"{__file__} is not an option; "),
    ],
)
def test_errors_of_options(refused, option, complaint):
    assert refused(option).startswith(complaint)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--model.lr=0.1", "model.optimizer.lr"),
        ("--k=4", "model.search.k"),
        ("--optimiser.average=false", "model.optimizer.average"),
    ],
)
def test_suggested_options(refused, option, meant):
    assert refused(option).endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("quickstart", "; did you mean pkg:quickstart?"),
        ("expriment.yaml", "; did you mean experiment.yaml?"),
        ("nothing.yaml", ""),
    ],
)
def test_missing_file(refused, tmp_path, given, meant):
    (tmp_path / "experiment.yaml").touch()
    assert refused("-c", given) == f"--config {given}: no such file{meant}"


def test_a_folder_is_no_configuration(refused, tmp_path):
    assert refused("-c", str(tmp_path)).startswith(f"--config {tmp_path}: this is a folder")


@pytest.mark.parametrize("command", ["fit", "rerank"])
def test_command_without_configuration(fails, command):
    assert f"{command}: no configuration" in fails(command)


@pytest.mark.parametrize(
    ("options", "seed"),
    [
        ([], 1),
        (["--seed_everything=3"], 3),
        (["--seed_everything=3", "--data.seed=1"], 1),
        (["-c", "o.yaml", "--seed_everything=3"], 2),
        (["--seed_everything=false"], 1),
    ],
)
def test_seed_of_the_data_is_that_of_everything(tmp_path, monkeypatch, options, seed):
    monkeypatch.chdir(tmp_path)
    Path("o.yaml").write_text("data: {init_args: {seed: 2}}")
    assert dry_run(["-c", str(QUICKSTART), *options]).datamodule.seed == seed
