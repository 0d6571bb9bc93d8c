"""structperc compare, as users run it."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from structperc.training.predictions import short_names
from tests.tiny import without_names

GOLD = "Anna B-PER\nsleeps O\n\nRome B-LOC\nwaits O\n"


def table_of(printed):
    """Rows of a table by name, "" for the heading."""
    rows = [re.split(r" {2,}", line.rstrip()) for line in printed.splitlines() if line]
    return {name: " ".join(cells).split() for name, *cells in rows}


def test_compare_of_hand_worked_files(run, file):
    gold = file(GOLD, "gold.txt")
    a = file(GOLD.replace("B-LOC", "B-PER"), "a.txt")
    b = file("Anna O\nsleeps O\n\nRome B-LOC\nwaits B-LOC\n", "b.txt")
    rows = table_of(run("evaluate", a, b, "--gold", gold))
    assert rows[""] == ["a.txt", "b.txt", "difference"]
    # a: one of two segments right, two found. b: one of two right, two found.
    assert rows["F1"] == ["50.00", "50.00", "+0.00"]
    # tokens: a errs at Rome, b at Anna and waits
    assert rows["token accuracy"] == ["75.00", "50.00", "-25.00"]
    assert rows["sentence accuracy"] == ["50.00", "0.00", "-50.00"]
    # only a right: Anna, waits; only b right: Rome; exact binomial over 3
    assert rows["tokens"] == ["2", "1", "1"]
    assert rows["sentences"] == ["1", "0", "1"]


def test_columns_of_compare(run, file):
    gold = file(GOLD, "gold.txt")
    wide = file("Anna NNP B-NP B-PER\nsleeps VBZ B-VP O\n\nRome NNP B-NP B-LOC\nwaits VBZ B-VP O\n", "wide.txt")
    assert table_of(run("evaluate", gold, wide, "--gold", gold))["F1"] == ["100.00", "100.00", "+0.00"]


def test_compare_of_labels_without_segments(run, file):
    gold, other = file("a NN\nb VB\n", "gold.txt"), file("a NN\nb NN\n", "other.txt")
    text = run("evaluate", gold, other, "--gold", gold, "--scheme", "none")
    assert "F1" not in text
    assert "50.00" in text


def test_compare_in_another_scheme(fails, run, file):
    gold = file("Anna S-PER\nSmith O\n", "gold.txt")
    message = fails("evaluate", gold, gold, "--gold", gold, "--scheme", "IOB2")
    assert all(part in message for part in ("gold.txt, sentence 1, token 1:", "'S-PER'", "IOB2", "--labels IOBES"))
    for scheme in ([], ["--scheme", "IOBES"], ["--labels", "IOBES"]):
        assert "100.00" in run("evaluate", gold, gold, "--gold", gold, *scheme)
    assert "IOB7" in fails("evaluate", gold, gold, "--gold", gold, "--scheme", "IOB7")


def test_compare_in_any_scheme(run, fails, file):
    """One of three tokens is wrong in a, none in b."""
    words, predicted = ["Anna", "Bo", "sleeps"], {"a": ["B-PER", "I-PER", "O"], "b": ["B-PER", "B-PER", "O"]}

    def write(name, *columns):
        return file("".join(" ".join(fields) + "\n" for fields in zip(words, *columns, strict=True)), name)

    a, b = (write(name, labels) for name, labels in predicted.items())
    scores = []
    for scheme, letters in (("IOB1", "IB"), ("IOB2", "BB"), ("IOBES", "SS"), ("BILOU", "UU")):
        labels = [*(f"{letter}-PER" for letter in letters), "O"]
        gold = write(f"gold_{scheme}", labels)
        beside = [write(f"{name}_beside_{scheme}", labels, own) for name, own in predicted.items()]
        for options in ([], ["--labels", scheme], ["--scheme", "IOB2"]):
            for places in ([a, b, "--gold", gold], beside):
                rows = table_of(run("evaluate", *places, *options))
                scores.append(
                    {name: row for name, row in rows.items() if name and name[-1] != ":" and "McN" not in name}
                )
    assert all(one == scores[0] for one in scores)
    assert scores[0]["F1"] == ["0.00", "100.00", "+100.00"]
    assert scores[0]["token accuracy"] == ["66.67", "100.00", "+33.33"]
    assert scores[0]["tokens"] == ["0", "1", "1"]
    mixed = write("mixed", ["I-PER", "O", "B-PER"])
    assert "mixed: " in fails("evaluate", a, b, "--gold", mixed)


@pytest.mark.parametrize(
    "other",
    [GOLD.replace("Rome", "Roma"), GOLD.replace("\n\n", "\n"), GOLD + "\nmore O\n"],
    ids=["words", "sentences", "length"],
)
def test_compare_of_different_texts(fails, file, other):
    gold, bad = file(GOLD, "gold.txt"), file(other, "bad.txt")
    assert "bad.txt" in fails("evaluate", gold, bad, "--gold", gold)
    assert "bad.txt" in fails("evaluate", bad, gold, "--gold", gold)


PREDICTED = "Anna NNP B-PER B-PER\nsleeps VBZ O O\n\nRome NNP B-LOC B-PER\nwaits VBZ O O\n"


def test_compare_with_gold_column(run, file):
    gold, a = file(GOLD, "gold.txt"), file(PREDICTED, "a.txt")
    b = file(PREDICTED.replace("B-LOC B-PER", "B-LOC B-LOC"), "b.txt")
    assert run("evaluate", a, b) == run("evaluate", a, b, "--gold", gold)


@pytest.mark.parametrize(
    "text",
    [
        GOLD,  # words and one label
        "Anna NNP B-PER\nsleeps VBZ O\n\nRome NNP B-LOC\nwaits VBZ O\n",  # other labels
        "Anna B-NP B-PER\nsleeps O O\n\nRome B-NP B-LOC\nwaits O O\n",  # no label but O in common
    ],
    ids=["words", "pos", "chunks"],
)
def test_compare_needs_gold(fails, file, text):
    a, good = file(text, "a.txt"), file(PREDICTED, "b.txt")
    for places in ((a, a), (good, a), (a, good)):
        message = fails("evaluate", *places)
        assert "a.txt: " in message
        assert "--gold" in message


def test_compare_accepts_predictions_of_nothing(run, file):
    a, b = file(PREDICTED, "a.txt"), file(re.sub(r"\S+\n", "O\n", PREDICTED), "b.txt")
    assert "token accuracy" in run("evaluate", a, b)


def test_compare_several(run, file):
    gold = file(GOLD, "gold.txt")
    a, b = file(GOLD.replace("B-LOC", "B-PER"), "a.txt"), file(GOLD.replace("B-PER", "O"), "b.txt")
    text = run("evaluate", a, b, gold, "--gold", gold, "--beta", "2")
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:4]}
    assert text.splitlines()[0].split() == ["F2", "precision", "recall", "tokens", "sentences"]
    # a: one of two found is right, two are wanted; b: one of one
    assert rows["a.txt"] == ["50.00", "50.00", "50.00", "75.00", "50.00"]
    assert rows["b.txt"] == ["55.56", "100.00", "50.00", "75.00", "50.00"]
    assert rows["gold.txt"] == ["100.00"] * 5
    pairs = [line.split()[:2] for line in text.splitlines()[-3:]]
    assert pairs == [["a.txt", "b.txt"], ["a.txt", "gold.txt"], ["b.txt", "gold.txt"]]


def test_compare_runs(run, trained, tmp_path):
    """The folder of a run stands for its predictions; names are as long as they must be."""
    other = tmp_path / "other" / "1"
    (other / "predictions").mkdir(parents=True)
    for split in ("dev", "test"):
        text = (trained.folder / "predictions" / f"{split}.conll").read_text()
        (other / "predictions" / f"{split}.conll").write_text(re.sub(r"\S+\n", "O\n", text))
    text = run("evaluate", trained.folder, other)
    assert text.splitlines()[0].split() == ["runs/1", "other/1", "difference"]
    files = [folder / "predictions" / "test.conll" for folder in (trained.folder, other)]
    assert run("evaluate", *files) == run("evaluate", files[0], other) == text
    score = json.loads((trained.folder / "results.json").read_text())["dev"]["score"]
    rows = {
        line[:20].strip(): line[20:].split()
        for line in run("evaluate", trained.folder, other, "--split", "dev").splitlines()
    }
    assert rows["F1"] == [f"{100 * score:.2f}", "0.00", f"{-100 * score:+.2f}"]


def test_compare_models_on_a_file(run, fails, trained, tmp_path):
    """The same table as from predictions that tag has written."""
    gold = trained.folder / "predictions" / "dev.conll"
    rows = [line.split() for line in without_names(gold.read_text()).splitlines()]
    text = "".join(" ".join(row[:-1]) + "\n" for row in rows)
    (tmp_path / "dev.txt").write_text(text)
    shutil.copytree(trained.folder / "model", tmp_path / "other" / "model")
    models = trained.folder, tmp_path / "other" / "model"
    table = table_of(run("evaluate", *models, tmp_path / "dev.txt"))
    score = json.loads((trained.folder / "results.json").read_text())["dev"]["score"]
    assert table["F1"] == [f"{100 * score:.2f}", f"{100 * score:.2f}", "+0.00"]
    assert "name a labelled file" in fails("evaluate", trained.folder / "model" / "model.json")
    assert "--candidates scores one model" in fails("evaluate", *models, tmp_path / "dev.txt", "--candidates", 1)
    assert "--reliability or --candidates" in fails("evaluate", models[0], tmp_path / "dev.txt", "--csv", "x.csv")


def test_compare_a_run_without_predictions(fails, trained, tmp_path):
    assert "predictions/test.conll" in fails("evaluate", trained.folder, tmp_path)
    (tmp_path / "predictions").mkdir()
    (tmp_path / "predictions" / "dev.conll").write_text(PREDICTED)
    assert "--split" in fails("evaluate", trained.folder, tmp_path)


def test_invalid_comparisons(fails, file):
    a, b = file(PREDICTED, "a.txt"), file(PREDICTED.replace("B-LOC B-PER", "O B-PER"), "b.txt")
    words = file("Anna\nsleeps\n", "words.txt")
    assert "beta" in fails("evaluate", a, a, "--beta", "0")
    assert "beta" in fails("evaluate", a, a, a, "--beta", "-1")
    assert "b.txt: " in fails("evaluate", a, b)
    assert "words.txt: " in fails("evaluate", a, a, "--gold", words, "--scheme", "none")
    assert "two or more" in fails("evaluate", a, "--gold", a)


@pytest.mark.parametrize(
    ("places", "names"),
    [
        (["x/a.txt", "y/b.txt"], ["a.txt", "b.txt"]),
        (["x/a.txt", "y/a.txt"], ["x/a.txt", "y/a.txt"]),
        (["a.txt", "a.txt"], ["a.txt", "a.txt"]),
        (["runs/ml/1", "runs/mce/1"], ["ml/1", "mce/1"]),
        (["runs/ml/1/model"], ["ml/1"]),
        (["runs/ml/1/predictions/dev.conll", "runs/ml/2"], ["ml/1", "ml/2"]),
        (["1", "2"], ["1", "2"]),
        (["model"], ["model"]),
    ],
)
def test_short_names(places, names):
    assert short_names(places) == names


def test_classes_of_the_working_directory(tmp_path):
    """As the installed script, whose search path has no present folder."""
    (tmp_path / "own.py").write_text("class Mine:\n    pass\n")
    code = "from structperc.cli.main import main; main(['explain']); import own"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
