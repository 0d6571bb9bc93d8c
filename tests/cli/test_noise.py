"""structperc noise: labels of the training data of a configuration that may be wrong."""

import csv
import json

from structperc.data import read_annotated
from structperc.data.read_options import ReadOptions
from tests.conftest import QUICKSTART, SMALL


def test_list_and_file(run, tmp_path):
    options = ["--data.unit=sentence", "--trainer.max_epochs=1", "--folds", "2", "-n", "1"]
    files = ["--csv", tmp_path / "noise.csv", "--json", tmp_path / "noise.jsonl"]
    printed = run("check", "--label-errors", "-c", QUICKSTART, *SMALL, *options, *files)
    with (tmp_path / "noise.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["probability"]) >= float(rows[-1]["probability"])
    assert rows[0]["place"] in printed
    assert f"{len(rows)} contradictions, 1 shown" in printed
    sentences = [json.loads(line) for line in (tmp_path / "noise.jsonl").read_text().splitlines()]
    assert sum(len(one["contradictions"]) for one in sentences) == len(rows)
    documents = read_annotated(str(tmp_path / "noise.jsonl"), ReadOptions(["text=text", "spans=spans"]))
    assert [len(one.spans) for one in documents] == [len(one["spans"]) for one in sentences]


def test_mistakes(fails):
    assert "data.unit" in fails("check", "--label-errors", "-c", QUICKSTART, *SMALL)
    assert "-n" in fails("check", "--label-errors", "-c", QUICKSTART, "-n", "-1")
