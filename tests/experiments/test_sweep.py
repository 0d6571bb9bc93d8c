"""structperc sweep: its trainings as processes of their own, and its decisions from results that are made up."""

import csv
import json
import math
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from structperc.cli.main import main
from structperc.errors import InputError
from structperc.experiments import experiment
from structperc.experiments.experiment import Run, failure_line, grid_rows, parse_grid, short_keys, split_values
from structperc.experiments.sweeps import best_of, plot_sweep, points_of, sweep_lines
from tests.forks import run_code

KEY = "model.features.init_args.cutoff"


# -- grids ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2", ["1", "2"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ("{a: 1, b: [2, 3]}, x", ["{a: 1, b: [2, 3]}", "x"]),
        ("", [""]),
    ],
)
def test_split_of_values(text, values):
    assert split_values(text) == values


def test_all_combinations_the_last_option_fastest():
    grid = parse_grid(["a.x=1,2,1", "--b.y=u,v"])
    assert grid == {"a.x": ["1", "2"], "b.y": ["u", "v"]}
    rows = grid_rows(grid, ["c.yaml"], ["--k=1"], [3])
    assert [row.name for row in rows] == ["a.x=1,b.y=u", "a.x=1,b.y=v", "a.x=2,b.y=u", "a.x=2,b.y=v"]
    assert rows[1].values == (("a.x", "1"), ("b.y", "v"))
    seeded = ["--seed_everything=3", "--data.seed=3"]
    assert rows[1].arguments(3) == ["--config=c.yaml", "--k=1", "--a.x=1", "--b.y=v", *seeded]
    assert short_keys(grid) == ["x", "y"]
    assert short_keys(["a.x", "b.x"]) == ["a.x", "b.x"]


@pytest.mark.parametrize("grids", [["C"], ["=1,2"], ["C="], ["C=1,,2"], ["C=1", "C=2"]])
def test_grids_of_another_form(grids):
    with pytest.raises(InputError, match="--grid"):
        parse_grid(grids)


def test_distinct_folders_of_points():
    names = [
        grid_rows({"files": [value]})[0].folder for value in ("{train: a/b}", "{train: a_b}", "x" * 300, "x" * 301)
    ]
    assert len(set(names)) == 4
    assert all("/" not in name and len(name) < 255 for name in names)


# -- trials ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "code", "line"),
    [
        ("notice\nstructperc: error: model.search.k is 0\n", 2, "model.search.k is 0"),
        ("1/9\r2/9\rstructperc: error: diverged\nlast words", 2, "diverged"),
        ("", 3, "exit status 3"),
    ],
)
def test_complaints(log, code, line):
    assert failure_line(log, code) == line


def made_up(scores, seeds=(None,)):
    """Points with these dev scores per seed, None for a training that failed."""
    found = []
    for value, row in scores.items():
        for seed, score in zip(seeds, row, strict=True):
            results = score and {"dev": {"score": score, "sentence_accuracy": score / 2}, "epochs": 2, "seconds": 0.5}
            (row,) = grid_rows({"m.C": [value]})
            found.append(Run(row, seed, [], None, results, None if score else "diverged"))
    return points_of(found)


def test_best_point(tmp_path):
    found = made_up({"1": [0.5, 0.75], "2": [0.75, 0.875], "3": [0.5, 0.5]}, [1, 2])
    assert best_of(found, tmp_path).row.name == "m.C=2"
    assert best_of(found, tmp_path).score == 0.8125


def test_of_equal_points_the_earlier_is_best(tmp_path):
    assert best_of(made_up({"9": [0.5], "2": [0.75], "1": [0.75]}), tmp_path).row.name == "m.C=2"
    assert best_of(made_up({"1": [0.75], "2": [0.75]}), tmp_path).row.name == "m.C=1"


def test_a_point_with_a_failure_is_not_chosen(tmp_path):
    assert best_of(made_up({"1": [0.75, None], "2": [0.5, 0.5]}, [1, 2]), tmp_path).row.name == "m.C=2"
    with pytest.raises(InputError, match=r"m.C=1: diverged"):
        best_of(made_up({"1": [None]}), tmp_path)


def test_table():
    rows = [line.split() for line in sweep_lines(made_up({"0.1": [0.5, 0.75], "10": [0.5, None]}, [1, 2]))]
    assert rows[0] == ["C", "dev", "score", "sentences", "epochs", "seconds", "std"]
    assert rows[1] == ["0.1", "62.50", "31.25", "2.0", "0.5", f"{100 * math.sqrt(2 * 0.125**2):.2f}"]
    assert rows[2] == ["10", "failed:", "diverged"]


@pytest.mark.parametrize(
    ("values", "scale", "places"),
    [
        (["10", "0.1", "1"], "log", [0.1, 1, 10]),
        (["1", "9"], "linear", [1, 9]),
        (["0", "100"], "linear", [0, 100]),
        (["a", "1"], "linear", [0, 1]),
        (["inf", "1"], "linear", [0, 1]),
    ],
)
def test_axis_of_the_figure(values, scale, places):
    (ax,) = plot_sweep(made_up({value: [0.5] for value in values})).axes
    assert ax.get_xscale() == scale
    assert ax.lines[0].get_xdata().tolist() == places


def test_lines_of_the_figure():
    found = [
        Run(grid_rows({"C": [c], "k": [k]})[0], None, [], None, {"dev": {"score": float(c) * float(k)}}, None)
        for c in ("0.5", "1")
        for k in ("0.2", "0.4")
    ]
    failed = Run(grid_rows({"C": ["2"], "k": ["0.2"]})[0], None, [], None, None, "diverged")
    (ax,) = plot_sweep(points_of([*found, failed])).axes
    assert [line.get_ydata().tolist() for line in ax.lines] == [pytest.approx([10, 20]), pytest.approx([20, 40])]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["k=0.2", "k=0.4"]


# -- whole sweeps, without training ---------------------------------------------------------------------------


class Sweeps:
    """Sweeps on a tiny embedded corpus, whose trainings only leave results."""

    def __init__(self, runs, capsys):
        self.runs, self.root, self.capsys, self.commands = runs, runs.root, capsys, []
        self.scores = {}  # value -> dev score, or a complaint

    def fit(self, command, folder):
        self.commands.append(command)
        value = next(option.partition("=")[2] for option in command if option.startswith(f"--{KEY}="))
        score = self.scores.get(value, 0.5)
        if isinstance(score, str):
            return score
        run = folder / "1"
        run.mkdir(parents=True)
        (run / "checkpoints").mkdir()
        names = ["test"] if "--data.holdout=0" in command else ["dev", "test"]
        shares = {"score": score, "sentence_accuracy": score / 2}
        (run / "results.json").write_text(json.dumps({"epochs": 1, "seconds": 0.1, **dict.fromkeys(names, shares)}))
        return None

    def arguments(self, *options, grid="1,2"):
        return self.runs.arguments("study", "--grid", f"{KEY}={grid}", *options)

    def __call__(self, *options, grid="1,2", status=0):
        self.capsys.readouterr()
        self.commands.clear()
        assert main(self.arguments(*options, grid=grid)) == status
        out, err = self.capsys.readouterr()
        return err if status else out

    @property
    def folder(self):
        return self.root / "sweep-cutoff"

    @property
    def record(self):
        return json.loads((self.folder / "sweep.json").read_text())


@pytest.fixture
def drawn(parts_made_once, runs, capsys, monkeypatch):
    made = Sweeps(runs, capsys)
    monkeypatch.setattr(experiment, "fit", made.fit)
    return made


@pytest.fixture
def sweeps(drawn, monkeypatch):
    """Without figures, which take most of the time."""
    monkeypatch.setattr("structperc.experiments.sweeps.plot_sweep", lambda *_: None)
    monkeypatch.setattr("structperc.experiments.sweeps.write_figure", lambda *_: None)
    return drawn


def test_the_best_point_of_a_sweep(drawn):
    drawn.scores = {"1": 0.25, "2": 0.75}
    text = drawn()
    assert f"best: {KEY}=2, dev score 75.00" in text
    assert f"model: {drawn.folder}/{KEY}=2/1/model" in text
    assert drawn.record["best"] == {"values": {KEY: "2"}, "dev_score": 0.75}
    assert [one["values"] for one in drawn.record["trials"]] == [{KEY: "1"}, {KEY: "2"}]
    assert all(one["command"].startswith("structperc fit --config=") for one in drawn.record["trials"])
    assert (drawn.folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    with open(drawn.folder / "sweep.csv", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row[KEY], float(row["dev_score"]), float(row["test_sentence_accuracy"])) for row in rows] == [
        ("1", 0.25, 0.125),
        ("2", 0.75, 0.375),
    ]


def test_only_missing_points_are_trained(sweeps):
    sweeps.scores = {"1": "diverged", "2": 0.75, "4": 0.875}
    assert "failed: diverged" in sweeps()
    assert len(sweeps.commands) == 2
    sweeps.scores["1"] = 0.25
    text = sweeps(grid="1,2,4")
    assert [command[-1].rpartition("=")[2] for command in sweeps.commands] == ["1", "4"]
    assert text.count("(kept)") == 1
    assert sweeps.record["best"]["values"] == {KEY: "4"}
    assert [one["error"] for one in sweeps.record["trials"]] == [None] * 3


def test_seeds(sweeps):
    text = sweeps("--seeds", "3", "5")
    assert sorted(path.relative_to(sweeps.folder).parts[1] for path in sweeps.folder.rglob("results.json")) == [
        *["seed=3"] * 2,
        *["seed=5"] * 2,
    ]
    assert all({"--seed_everything=5", "--data.seed=5"} <= set(command) for command in sweeps.commands[1::2])
    assert [one["seed"] for one in sweeps.record["trials"]] == [3, 5, 3, 5]
    assert f"[2/2] {KEY}=2, seed 5: dev score 50.00" in text


def test_final_training_on_all_data(sweeps):
    sweeps.scores = {"1": 0.75, "2": 0.25}
    text = sweeps("--data.dev=0", "--holdout", "5")
    assert ["--data.holdout=5" in command for command in sweeps.commands] == [True, True, False]
    assert {f"--{KEY}=1", "--data.holdout=0"} <= set(sweeps.commands[-1])
    assert f"[final] {KEY}=1: test score 75.00" in text
    (final,) = sweeps.record["final"]
    assert final["run"] == str(sweeps.folder / "final" / f"{KEY}=1" / "1")
    assert "dev" not in final["results"]


def test_failing_final_training(sweeps, monkeypatch):
    whole = sweeps.fit
    monkeypatch.setattr(
        experiment, "fit", lambda command, folder: "no" if "--data.holdout=0" in command else whole(command, folder)
    )
    message = sweeps("--data.dev=0", "--holdout", "5", status=2)
    assert "final training" in message
    assert sweeps.record["final"][0]["error"] == "no"


def test_every_point_fails(sweeps):
    sweeps.scores = {"1": "diverged", "2": "diverged"}
    assert "no point could be trained" in sweeps(status=2)
    assert [one["error"] for one in sweeps.record["trials"]] == ["diverged"] * 2


def test_another_sweep_in_the_same_folder(sweeps):
    sweeps()
    message = sweeps("--trainer.max_epochs=3", status=2)
    assert f"{sweeps.folder} was created with different options; set --root" in message
    sweeps("--trainer.max_epochs=3", "--root", str(sweeps.root / "more"))
    assert (sweeps.root / "more" / "sweep.json").is_file()


@pytest.mark.parametrize(
    ("options", "grid", "named"),
    [
        ([], "1,x", f"sweep: {KEY}=x: "),
        ([], "1,0", f"sweep: {KEY}=0: "),
        ([], "1,", "a value is empty"),
        (["--model.nothing=1"], "1", "model.nothing"),
        (["--holdout", "5"], "1", "there is a dev split"),
        (["--holdout", "-5"], "1", "data.holdout "),
        (["-c", "none.yaml"], "1", "none.yaml"),
    ],
)
def test_mistakes_before_training(sweeps, options, grid, named):
    message = sweeps(*options, grid=grid, status=2)
    complaints = [line for line in message.splitlines() if line.startswith("structperc: error:")]
    assert len(complaints) == 1
    assert named in complaints[0]
    assert not sweeps.commands
    assert not sweeps.root.exists()


def test_a_sweep_without_a_grid(runs, fails):
    assert "--grid" in fails(*runs.arguments("study"))


# -- trainings ------------------------------------------------------------------------------------------------

FAILING = """
from structperc.criteria import PerceptronLoss
from structperc.criteria.base import CandidateLoss


class Moody(CandidateLoss):
    def __init__(self, mood: str = "good") -> None:
        super().__init__()
        self.mood = mood

    def decide(self, scored):
        if self.mood == "bad":
            raise RuntimeError("the objective is not a number")
        return PerceptronLoss().decide(scored)
"""


def test_a_training_is_a_program(tmp_path):
    assert "unknown command 'nothing'" in experiment.fit(["nothing"], tmp_path / "run")
    assert "'nothing'" in (tmp_path / "run" / "log.txt").read_text()


CHILD = """
import os, runpy, sys
folder, sys.argv[:] = sys.argv[1], sys.argv[2:]
os.chdir(folder)
sys.path.insert(0, folder)
os.dup2(os.pipe()[0], 0)  # standard input, which does not end
try:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
except SystemExit as ended:
    sys.stdout.flush()
    os._exit(ended.code or 0)
"""


@pytest.fixture
def forked(fork_server, tmp_path, monkeypatch):
    """Programs are started as forks of a process that has imported the library."""

    @contextmanager
    def start(command, stdin, stdout, stderr, env):
        _, _, *arguments = command
        done = fork_server(Path(stdout.name), run_code, CHILD, str(tmp_path), *arguments)
        yield SimpleNamespace(wait=lambda: done.status)

    monkeypatch.setattr(experiment.subprocess, "Popen", start)


@pytest.mark.slow
def test_trainings_of_points(forked, runs, tmp_path, monkeypatch, capsys):
    """Two processes, one training and one that fails; then, here, the first one goes on once its results are gone."""
    (tmp_path / "moods.py").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    moody = ["--model.criterion=moods.Moody", "--grid", "model.criterion.init_args.mood=good,bad"]
    arguments = runs.arguments("study", *moody, "--trainer.max_epochs=1")
    assert main(arguments) == 0
    text = capsys.readouterr().out
    folder = runs.root / "sweep-mood"
    good, bad = (folder / f"model.criterion.init_args.mood={mood}" for mood in ("good", "bad"))
    assert "RuntimeError: the objective is not a number" in text
    assert "Traceback" in (bad / "log.txt").read_text()
    results = json.loads((good / "1" / "results.json").read_text())
    assert f"dev score {100 * results['dev']['score']:.2f}" in text
    assert "FB1" in (good / "log.txt").read_text()

    (good / "1" / "results.json").unlink()
    monkeypatch.setattr(
        experiment, "fit", lambda command, folder: str(main([*command, *experiment.resume_options(folder)]) or "")
    )
    assert main([arg.replace("good,bad", "good") for arg in arguments]) == 0
    assert "(kept)" not in capsys.readouterr().out
    assert [path.name for path in good.iterdir() if path.is_dir()] == ["1"]
    again = json.loads((good / "1" / "results.json").read_text())
    assert (again["dev"], again["test"]) == (results["dev"], results["test"])
