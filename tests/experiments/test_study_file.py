"""Study files: what they say, and one line for each way in which they cannot be meant."""

from pathlib import Path

import pytest

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.experiments.study_file import digests, read_study
from structperc.training.overlays import read_configuration
from tests.errors import error_message
from tests.tiny import Sentences, sentences

GOOD = """
seeds: [1, 2]
rows:
  one: {configs: [a.yaml]}
  two: {configs: [a.yaml, b.yaml], with: {k: 2}, command: rerank, seeds: [7]}
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a study beside two configurations, in the folder one is in; -> its name."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text(f"trainer: {{{name[0]}: 1}}\n")

    def write(text):
        Path("study.yaml").write_text(text, encoding="utf-8")
        return "study.yaml"

    return write


def test_values_and_seeds_of_rows(write):
    study = read_study(write(GOOD + "with: {k: 1, l: 1}\nbaseline: two\nsplit: test\n"))
    assert (study.baseline, study.split) == ("two", "test")
    assert [(row.name, seed) for one in study.rows for row, seed in one.trials] == [("one", 1), ("one", 2), ("two", 7)]
    one, two = study.rows
    assert (one.command, two.command) == ("fit", "rerank")
    assert one.arguments(2) == ["--config=study.yaml#one", "--seed_everything=2", "--data.seed=2"]
    assert two.arguments(7) == ["--config=study.yaml#two", "--seed_everything=7", "--data.seed=7"]
    assert read_configuration("study.yaml#one") == {"trainer": {"a": 1}, "k": 1, "l": 1}
    assert read_configuration("study.yaml#two") == {"trainer": {"a": 1, "b": 1}, "k": 2, "l": 1}
    assert read_study(write(GOOD + "  three: {predictions: {dev: a.yaml}}\n")).rows[2].configs == []
    assert "study.yaml#three: this row has no configuration" in error_message(read_configuration, "study.yaml#three")


def test_rows_on_a_base_and_on_other_rows(write):
    Path("more").mkdir()
    Path("more/b.yaml").write_text("l: 3\n")
    write(
        GOOD.replace("two: {configs: [a.yaml, b.yaml], ", "two: {configs: ['#one'], about: two, init_from: one, ")
        + "  more: {configs: ['study.yaml#two', more/b.yaml]}\nbase: [b.yaml]\n"
    )
    assert read_configuration("study.yaml#two") == {
        "trainer": {"a": 1, "b": 1},
        "k": 2,
        "model": {"init_from": "runs/study/one/1/model"},
    }
    assert read_configuration("study.yaml#more") == {**read_configuration("study.yaml#two"), "l": 3}
    write(GOOD.replace("one: {configs: [a.yaml]}", "one: {configs: ['#two']}").replace("[a.yaml, b", "['#one', b"))
    assert "a cycle of overlays leads back to study.yaml#" in error_message(read_configuration, "study.yaml#one")


def test_rows_of_learning_curves(write):
    text = GOOD + "  three: {configs: [a.yaml], init_from: one}\ntrain_sizes: [10, 0.5, null]\n"
    study = read_study(write(text))
    sizes = {"10": "10", "0.5": "0.5", "all": "null"}
    assert [row.name for row in study.rows] == [f"{row}, {size}" for size in sizes for row in ("one", "two", "three")]
    for row, size in zip(study.rows, [size for size in sizes for _ in range(3)], strict=True):
        assert row.options[-1] == f"--data.train_size={sizes[size]}"
        assert row.init_from == (f"one, {size}" if row.learner == "three" else None)
        assert row.seeds == ([7] if row.learner == "two" else [1, 2])
    assert study.baseline == "one"


def test_seeds_that_the_study_does_not_have_are_reported(write, caplog):
    read_study(write(GOOD))
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith("study.yaml: ")
    assert "two [7]" in warning
    caplog.clear()
    read_study(write(GOOD.replace("[7]", "[2]")))
    assert not caplog.records


def test_optional_keys(write):
    study = read_study(write(GOOD))
    assert (study.baseline, study.split) == ("one", "dev")


@pytest.mark.parametrize("name", ["..", ".lock", "a/b", "x" * 300])
def test_folders_of_rows(write, name):
    (row,) = read_study(write(f"seeds: [1]\nrows:\n  '{name}': {{configs: [a.yaml]}}\n")).rows
    assert "/" not in row.folder
    assert not row.folder.startswith(".")
    assert len(row.folder) < 255


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("rows:", "row:", "study.yaml: "),
        ("seeds: [1, 2]", "", "study.yaml: "),
        ("seeds: [1, 2]", "seeds: []", "study.yaml: seeds: "),
        ("seeds: [1, 2]", "seeds: [1, 1]", "study.yaml: seeds: "),
        ("seeds: [1, 2]", "seeds: [4294967296]", "study.yaml: seeds: "),
        ("seeds: [1, 2]", "seeds: [1]\nbaseline: CRF", "baseline: "),
        ("seeds: [1, 2]", "seeds: [1]\ntrain_sizes: [5, 5]", "train_sizes: "),
        ("seeds: [1, 2]", "seeds: [1]\nsplit: train", "split: expected one of 'dev', 'test', got 'train'"),
        ("seeds: [1, 2]", "seeds: [1]\nwith: --k=1", "with: expected dict"),
        ("k: 2", "data: {init_args: {seed: 2}}", "rows.two.with: a study sets data.seed itself"),
        ("one: {configs: [a.yaml]}", "one: [a.yaml]", "rows.one: write a mapping; keys are about, command"),
        ("one: {configs: [a.yaml]}", "one: {config: a.yaml}", "rows.one.config: unknown key"),
        ("one: {configs: [a.yaml]}", "one: {configs: []}", "study.yaml#one: this row has no configuration"),
        ("one: {configs: [a.yaml]}", "one: {configs: [c.yaml]}", "study.yaml:4: configs: no file c.yaml"),
        ("one: {configs: [a.yaml]}", "one: {configs: ['#3']}", "study.yaml: there is no row '3'"),
        ("seeds: [1, 2]", "seeds: [1, 2]\n3: 4", "study.yaml: 3: "),
        ("two:", "one:", "study.yaml:5: "),
        ("[1, 2]", "[1, 2", "study.yaml:3: "),
    ],
)
def test_mistakes_name_file_and_key(write, old, new, complaint):
    assert GOOD.count(old) == 1
    found = error_message(read_study, write(GOOD.replace(old, new)))
    assert found.startswith("study.yaml")
    assert complaint in found


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("init_from: two", "'two'"),
        ("init_from: later", "'later'"),
        ("init_from: ranked", "'ranked'"),
        ("init_from: one, command: rerank", "re-ranker"),
        ("init_from: one, seeds: [3, 1]", "one has no seed 3"),
    ],
)
def test_init_from_of_rows(write, row, complaint):
    rows = ["one: {}", "ranked: {command: rerank}", f"two: {{{row}}}", "later: {}"]
    lines = [f"  {one.replace('{', '{configs: [a.yaml], ')}\n" for one in rows]
    text = "".join(["seeds: [1, 2]\nrows:\n", *lines])
    found = error_message(read_study, write(text))
    assert found.startswith("study.yaml: rows.two.init_from: ")
    assert complaint in found


def test_one_model_may_start_all_seeds(write):
    text = "seeds: [1, 2]\nrows:\n  one: {configs: [a.yaml], seeds: [4]}\n  two: {configs: [a.yaml], init_from: one}\n"
    assert [row.init_from for row in read_study(write(text)).rows] == [None, "one"]


@pytest.mark.parametrize("rows", ["{}", "[]", ""])
def test_a_study_without_rows(write, rows):
    with pytest.raises(InputError, match=r"study.yaml: rows: "):
        read_study(write(f"seeds: [1]\nrows: {rows}\n"))


@pytest.mark.parametrize("text", ["", "- a\n", "just text\n"])
def test_invalid_study(write, text):
    with pytest.raises(InputError, match=r"study.yaml: .*base, baseline, evaluate, rows"):
        read_study(write(text))


def test_missing_study(tmp_path):
    with pytest.raises(InputError, match=r"none.yaml: "):
        read_study(str(tmp_path / "none.yaml"))


class Unlabelled(Sentences):
    """Sentences whose development data have no labels."""

    def read(self, split):
        return super().read(split) if split == "train" else (split, Corpus.from_sentences([{"word": ["Anna"]}]))


def test_split_without_gold_labels():
    with pytest.raises(InputError, match="the dev split has no gold labels"):
        digests(Unlabelled(sentences(2)), "dev")


def test_empty_sentences_do_not_count():
    made = sentences(3)
    assert digests(Sentences([*made[:1], [], *made[1:]]), "train") == digests(Sentences(made), "train")
    assert digests(Sentences(made[:2]), "train") != digests(Sentences(made), "train")
