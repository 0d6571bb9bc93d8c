"""Configurations of several files: what lies above wins, and complaints name the file that is wrong."""

from itertools import permutations
from pathlib import Path

import pytest
import yaml

from structperc.builder import accepts_several
from structperc.cli.main import main
from structperc.data.yaml_file import node_value
from structperc.errors import InputError
from structperc.experiments.experiment import dry_run, identity
from structperc.training.overlays import DEEPEST, compose_all, read_configuration, with_option
from tests.errors import error_message

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files, by name, into the folder one is in."""
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            Path(f"{name}.yaml").write_text(text, encoding="utf-8")

    return write


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        ("a: 1\nb: 2", "b: 3\nc: 4", {"a": 1, "b": 3, "c": 4}),
        ("a: {x: 1, y: {z: 2}}", "a: {y: {w: 3}}", {"a": {"x": 1, "y": {"z": 2, "w": 3}}}),
        ("a: [1, 2, 3]", "a: [4]", {"a": [4]}),
        ("a: {x: 1}", "a: null", {"a": None}),
        ("s: {k: 3}", "s: {class_path: A}", {"s": {"class_path": "A", "init_args": {"k": 3}}}),
        ("s: {class_path: A, init_args: {k: 1}}", "s: {class_path: B}", {"s": {"class_path": "B"}}),
        (
            "s: {init_args: {k: 1}}",
            "s: {class_path: A, init_args: {l: 2}}",
            {"s": {"class_path": "A", "init_args": {"k": 1, "l": 2}}},
        ),
        (
            "s: {class_path: A, init_args: {k: 1, l: 1}}",
            "s: {k: 2}",
            {"s": {"class_path": "A", "init_args": {"k": 2, "l": 1}}},
        ),
        (
            "s: {class_path: A, init_args: {t: {class_path: B, init_args: {k: 1}}}}",
            "s: {t: {k: 2}}",
            {"s": {"class_path": "A", "init_args": {"t": {"class_path": "B", "init_args": {"k": 2}}}}},
        ),
        ("s: {class_path: p.A, init_args: {k: 2}}", "s: p.A", {"s": {"class_path": "p.A", "init_args": {"k": 2}}}),
        ("s: {class_path: p.A, init_args: {k: 2}}", "s: p.B", {"s": {"class_path": "p.B"}}),
        ("s: {class_path: A, init_args: {k: 2}}", "s: null", {"s": None}),
        ("l: [1]", "l+: [2, 3]", {"l": [1, 2, 3]}),
        ("l: [1]", "l+: {class_path: A}", {"l": [1, {"class_path": "A"}]}),
        ("l: null", "l+: [2]", {"l": [2]}),
        ("d: {C: a, C+: b}", "d: {C+: c, C: d}", {"d": {"C": "d", "C+": "c"}}),
        ("a: &x {n: 1, m: 2}\nb: {<<: *x, n: 3}", "b: {k: 4}", {"a": {"n": 1, "m": 2}, "b": {"n": 3, "m": 2, "k": 4}}),
    ],
)
def test_one_mapping_laid_over_another(write, below, above, expected):
    write(below=below, own=f"overlays: [below.yaml]\n{above}", above=above)
    assert read_configuration("own.yaml") == expected
    assert node_value(compose_all(["below.yaml", "above.yaml"])) == expected
    assert node_value(compose_all([below, "above.yaml"])) == expected


UNIONS = [
    ("structperc.features.FeatureExtractor", "clusters", "structperc.features.Clusters"),
    ("pytorch_lightning.trainer.trainer.Trainer", "logger", "pytorch_lightning.loggers.logger.Logger"),
]


@pytest.mark.parametrize(("owner", "option", "part"), UNIONS)
@pytest.mark.parametrize("nested", [True, False])
def test_one_class_and_several_replace_each_other(write, owner, option, part, nested):
    one = {"class_path": part, "init_args": {"some_option": 1}}
    values = [one, [one, one]]
    if accepts_several(owner, option):
        values += [{"a": one, "b": one}, {"c": {"class_path": part}}, {"d": {"init_args": {"own_option": 2}}}]
    for below, above in permutations(values, 2):
        if isinstance(below, dict) and isinstance(above, dict) and "class_path" not in below.keys() | above.keys():
            continue  # two mappings are merged
        options = [{option: value} for value in (below, above)]
        write(
            below=yaml.safe_dump({"top": {"class_path": owner, "init_args": options[0]}}),
            above=yaml.safe_dump({"top": {"init_args": options[1]} if nested else options[1]}),
        )
        merged = node_value(compose_all(["below.yaml", "above.yaml"]))
        assert merged == {"top": {"class_path": owner, "init_args": options[1]}}
        given = ("top.init_args." if nested else "top.") + option
        assert node_value(with_option(compose_all(["below.yaml"]), (given, yaml.safe_dump(above)))) == merged


def test_options_of_a_class_do_not_replace_it():
    owner = "structperc.features.FeatureExtractor"
    below = {"class_path": "structperc.features.Clusters", "init_args": {"paths": "a.tsv"}}
    for above in ({"paths": {"class_path": "A"}}, {"lower_case": {"class_path": "A"}}, {"lower_case": False}):
        trees = [{"top": {"class_path": owner, "init_args": {"clusters": value}}} for value in (below, above)]
        merged = node_value(compose_all([*map(yaml.safe_dump, trees)]))
        clusters = merged["top"]["init_args"]["clusters"]
        assert clusters == {**below, "init_args": {**below["init_args"], **above}}


def test_precedence_of_overlays(write):
    write(
        one="a: 1\nb: 1\nc: 1\nd: 1",
        two="overlays: [three.yaml]\nc: 2\nd: 2",
        three="b: 3\nc: 3\nd: 3",
        own="overlays: [one.yaml, two.yaml]\nd: 0",
    )
    assert read_configuration("own.yaml") == {"a": 1, "b": 3, "c": 2, "d": 0}


def test_relative_paths(write, tmp_path, monkeypatch):
    for folder in ("data", "own", "elsewhere"):
        Path(folder).mkdir()
    write(**{"data/all": "a: 1", "data/some": "overlays: [all.yaml]", "own/e": "overlays: [../data/some.yaml]\nb: 2"})
    monkeypatch.chdir("elsewhere")
    for path in ("../own/e.yaml", tmp_path / "own" / "e.yaml"):
        assert read_configuration(path) == {"a": 1, "b": 2}


def test_two_files_may_lie_on_the_same_one(write):
    files = {f"n{i}": f"overlays: [n{i + 1}.yaml, n{i + 1}.yaml]\nk{i}: {i}" for i in range(DEEPEST)}
    write(**files, **{f"n{DEEPEST}": "a: 1"})
    assert len(read_configuration("n0.yaml")) == DEEPEST + 1


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"own": "a: 1\noverlays: [none.yaml]"}, "own.yaml:2: overlays: "),
        ({"own": "overlays: [below.yaml]", "below": "overlays: [x/y.yaml]"}, "below.yaml:1: overlays: "),
        ({"own": "overlays: [$NOWHERE/x.yaml]"}, "$NOWHERE/x.yaml: "),
        ({"own": "overlays: [own.yaml]"}, "own.yaml:1: overlays: "),
        ({"own": "overlays: [b.yaml]", "b": "overlays: [./own.yaml]"}, "b.yaml:1: overlays: "),
        ({"own": "overlays: [1]"}, "own.yaml:1: overlays: "),
        ({"own": "overlays: [below.yaml]", "below": ""}, "below.yaml: "),
        ({"own": "overlays: [below.yaml]", "below": "a: 1\nb: 1\na: 2"}, "below.yaml:3: "),
        ({"own": "overlays: [below.yaml]", "below": "model: {class_path: 3}"}, "below.yaml:1: model: class_path "),
        (
            {**{f"n{i}": f"overlays: [n{i + 1}.yaml]" for i in range(DEEPEST + 2)}, "own": "overlays: [n0.yaml]"},
            f"n{DEEPEST - 1}.yaml:1: overlays: more than {DEEPEST} ",
        ),
    ],
)
def test_invalid_files(write, files, complaint):
    write(**files)
    assert error_message(dry_run, ["-c", "own.yaml"]).startswith(complaint)


@pytest.mark.parametrize(
    ("below", "own", "complaint"),
    [
        ("\ntrainer:\n  max_epoch: 3", "", "below.yaml:3: trainer.max_epoch: "),
        ("model: {search: {k: 1}}", "model: {search: {init_args: {k: x}}}", "own.yaml:2: model.search.k:"),
        (
            "model: {criterion: {class_path: x.P}}",
            "model: {criterion: {init_args: {C: 5}}}",
            "below.yaml:1: model.",
        ),
    ],
)
def test_errors_name_file_and_line(write, below, own, complaint):
    write(below=below, own=f"overlays: [{QUICKSTART}, below.yaml]\n{own}")
    assert error_message(dry_run, ["-c", "own.yaml", "--trainer.accelerator=cpu"]).startswith(complaint)


def test_overlays_only_in_files(write):
    write(below="trainer: {max_epochs: 1}")
    with pytest.raises(InputError, match=r"^overlays: "):
        dry_run(["-c", str(QUICKSTART), "-c", "{overlays: [below.yaml]}"])


SMALL = "data: {init_args: {train: 8, dev: 4, test: 4}}\ntrainer: {max_epochs: 2, enable_progress_bar: false}\n"


@pytest.fixture
def experiment(write):
    """An experiment on the quickstart, with small data; -> its file and that of the same as one file."""
    write(
        small=SMALL, own=f"overlays: [{QUICKSTART}, small.yaml]\nmodel:\n  optimizer: {{init_args: {{average: false}}}}"
    )
    Path("whole.yaml").write_text(yaml.safe_dump(read_configuration("own.yaml")), encoding="utf-8")
    return "own.yaml", "whole.yaml"


def test_run_of_an_experiment(experiment):
    for file in experiment:
        assert main(["fit", "-c", file, "--trainer.accelerator=cpu"]) == 0
    saved = [Path(f"runs/{name}/1/logs/version_0/config.yaml").read_text() for name in ("own", "whole")]
    assert saved[0].replace("runs/own/", "runs/whole/") == saved[1]
    for command, *options in (["validate"], ["test"], ["predict", "--data.predict=test"]):
        assert main([command, "-c", "own.yaml", "--ckpt_path=best", "--trainer.accelerator=cpu", *options]) == 0
    assert Path("runs/own/1/predictions").is_dir()


def test_precedence_of_later_files(experiment, write):
    write(more="overlays: [most.yaml]\ndata: {init_args: {train: 9}}", most="model: {search: {init_args: {k: 3}}}")
    found = dry_run(["-c", "own.yaml", "-c", "more.yaml", "--data.dev=5", "--trainer.accelerator=cpu"]).config
    data, model = (found[name]["init_args"] for name in ("data", "model"))
    assert (data["train"], data["dev"], data["test"]) == (9, 5, 4)
    assert model["search"]["init_args"]["k"] == 3
    assert model["optimizer"]["init_args"]["average"] is False


def test_precedence_of_options(experiment, write):
    write(
        one="data: {init_args: {dev: 3, types: {PER: person}}}\ntrainer: {max_epochs: 4}",
        two="data: {init_args: {dev: 5, types: {LOC: place}}}\ntrainer: {max_epochs: 5}",
        both="overlays: [own.yaml, one.yaml, two.yaml]",
    )
    cpu = "--trainer.accelerator=cpu"
    found = dry_run(["-c", "own.yaml", "--data.dev=9", "-cone.yaml", "--config=two.yaml", cpu]).config
    assert (found["data"]["init_args"]["dev"], found["trainer"]["max_epochs"]) == (9, 5)
    assert found["data"]["init_args"]["types"] == {"PER": "person", "LOC": "place"}
    assert dry_run(["-c", "own.yaml", "-c", "{trainer: {max_epochs: 1}}", cpu]).root == Path("runs/own")
    same = dry_run(["-c", "both.yaml", "--data.dev=9", cpu]).config
    assert all(found[name] == same[name] for name in ("data", "model"))


def test_experiments_in_studies_and_sweeps(experiment):
    own, whole = ([file] for file in experiment)
    assert identity(own, options=[]) == identity(whole, options=[])
