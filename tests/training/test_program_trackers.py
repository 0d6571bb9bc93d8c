"""What trackers of experiments are told, here a logger that keeps it in memory, and TensorBoard, which is read back."""

import json

import pytest
import yaml
from pytorch_lightning.loggers import Logger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


class Tracker(Logger):
    """Keeps what it is told, as a service elsewhere would; `broken` names what it refuses."""

    made: list["Tracker"] = []  # noqa: RUF012
    broken = name = save_dir = ""
    version = 0

    def __init__(self, save_dir: str = "elsewhere", name: str = "tracked", run_name: str | None = None) -> None:
        super().__init__()
        self.save_dir, self.name, self.run_name = save_dir, name, run_name
        self.options, self.rows, self.ends = {}, [], []
        self.made.append(self)

    @property
    def experiment(self):
        if self.broken == "login":
            raise RuntimeError("no login\nhere")
        return self

    def log_hyperparams(self, params, *args, **kwargs):
        self.options = params

    def log_metrics(self, metrics, step=None):
        if self.broken == "scores" and any(name.startswith("model/") for name in metrics):
            raise OSError("gone")
        self.rows.append((step, dict(metrics)))

    def finalize(self, status):
        self.ends.append(status)


@pytest.fixture
def tracked(runs, monkeypatch, tmp_path):
    """Runs a fit with the stand-in beside the table of the run; -> what it was told."""
    monkeypatch.setattr(Tracker, "made", [])
    monkeypatch.chdir(tmp_path)
    path = f"{Tracker.__module__}.{Tracker.__qualname__}"
    own = tmp_path / "logger.yaml"

    def tracked(*options, also=("structperc.training.loggers.RunLog",), **args):
        loggers = [{"class_path": one, "init_args": {"save_dir": "", "name": "logs"}} for one in also]
        loggers.append({"class_path": path, "init_args": args})
        own.write_text(yaml.safe_dump({"trainer": {"logger": loggers}}))
        assert runs("fit", f"-c={own}", *options) == 0
        return Tracker.made[-1]

    return tracked


def curve(tracker, name):
    return [(row["epoch"], step, row[name]) for step, row in tracker.rows if name in row]


def test_curves_configuration_and_scores_of_the_saved_model(tracked, runs):
    tracker = tracked("--trainer.max_epochs=2")
    for name in ("dev/score", "train/objective"):
        assert [epoch for epoch, *_ in curve(tracker, name)] == [0, 1]

    options = tracker.options  # as plain values
    assert options["data"]["init_args"]["unit"] == "document"
    assert options["model"]["init_args"]["optimizer"]["class_path"] == "structperc.optim.Perceptron"
    assert options["trainer"]["max_epochs"] == 2
    assert not {"logger", "default_root_dir"} & options["trainer"].keys()
    json.dumps(options)

    results = json.loads((runs.root / "1" / "results.json").read_text())
    told = tracker.rows[-1][1]
    assert {name: told[f"model/test/{name}"] for name in results["test"]} == results["test"]
    assert told["model/dev/PER/score"] == results["types"]["dev"]["PER"]["score"]
    assert tracker.ends[-1] == "success"


def test_steps_of_a_resumed_run(tracked):
    tracked("--trainer.max_epochs=1")
    tracker = tracked("--trainer.max_epochs=2", "--ckpt_path=last")
    (first,) = curve(Tracker.made[0], "dev/score")
    (second,) = curve(tracker, "dev/score")
    assert (first[0], second[0]) == (0, 1)
    assert second[1] > first[1]


def test_folder_with_other_logger(tracked, runs, tmp_path):
    tracked("--trainer.max_epochs=1", also=())
    run = runs.root / "1"
    assert (run / "config.yaml").is_file()
    assert {path.name for path in run.iterdir()} >= {"model", "checkpoints", "results.json", "predictions"}
    assert not (tmp_path / "elsewhere").exists()


def test_name_of_the_run(tracked):
    tracker = tracked("--trainer.max_epochs=1", save_dir="", name="logs")
    assert (tracker.name, tracker.run_name) == ("runs/1", "runs/1")
    assert tracked("--trainer.max_epochs=1", name="mine", run_name="own").name == "mine"
    assert Tracker.made[-1].run_name == "own"


def test_tracker_without_login(tracked, runs, monkeypatch, capsys):
    monkeypatch.setattr(Tracker, "broken", "login")
    with pytest.raises(AssertionError):
        tracked("--trainer.max_epochs=1")
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("structperc: error: trainer.logger: Tracker ")
    assert "no login here" in message
    assert not list(runs.root.rglob("last.ckpt"))


def test_tracker_unreachable_at_the_end(tracked, runs, monkeypatch, caplog):
    monkeypatch.setattr(Tracker, "broken", "scores")
    tracked("--trainer.max_epochs=1")
    assert "trainer.logger: Tracker" in caplog.text
    assert (runs.root / "1" / "results.json").is_file()


def test_tensorboard_has_curves_and_scores(runs):
    assert runs("fit", "-c=pkg:overlays/loggers#tensorboard", "--trainer.max_epochs=2") == 0
    logs = EventAccumulator(str(runs.root / "1" / "tensorboard" / "version_0"))
    logs.Reload()
    assert [event.value for event in logs.Scalars("epoch")][::2] == [0, 1]
    assert len(logs.Scalars("dev/score")) == 2
    results = json.loads((runs.root / "1" / "results.json").read_text())
    assert logs.Scalars("model/test/score")[0].value == pytest.approx(results["test"]["score"])
    assert (runs.root / "1" / "logs" / "version_0" / "config.yaml").is_file()
