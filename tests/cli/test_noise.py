"""structperc noise: labels of the training data of a configuration that may be wrong."""

import csv

from tests.conftest import QUICKSTART, SMALL


def test_list_and_file(run, tmp_path):
    options = ["--data.unit=sentence", "--trainer.max_epochs=1", "--folds", "2", "-n", "1"]
    printed = run("noise", "-c", QUICKSTART, *SMALL, *options, "--csv", tmp_path / "noise.csv")
    with (tmp_path / "noise.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["probability"]) >= float(rows[-1]["probability"])
    assert rows[0]["place"] in printed
    assert f"{len(rows)} contradictions, 1 shown" in printed


def test_mistakes(fails):
    assert "data.unit" in fails("noise", "-c", QUICKSTART, *SMALL)
    assert "-n" in fails("noise", "-c", QUICKSTART, "-n", "-1")
