"""structperc evaluate: the scores that fit prints, without its configuration."""

import json

import pytest


@pytest.fixture(scope="module")
def held_out(begun_with_columns):
    """The development data of the run, as columns with gold labels in IOB2."""
    rows = [line.split() for line in (begun_with_columns.run / "predictions" / "dev.conll").read_text().splitlines()]
    path = begun_with_columns.folder / "dev.txt"
    path.write_text("".join(" ".join(row[:-1]) + "\n" for row in rows))
    return path


def test_the_table_and_the_scores_are_those_of_fit(run, begun_with_columns, held_out, tmp_path):
    printed = run("evaluate", begun_with_columns.run / "model", held_out, "--json", tmp_path / "scores.json")
    assert printed.strip() in begun_with_columns.printed
    results = json.loads((begun_with_columns.run / "results.json").read_text())
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert {name: scores[name] for name in results["dev"]} == results["dev"]
    assert scores["types"] == results["types"]["dev"]
    assert (scores["sentences"], scores["tokens"]) == (2, 7)


def test_gold_in_another_scheme(run, begun_with_columns, held_out):
    other = held_out.with_name("iobes.txt")
    other.write_text(held_out.read_text().replace("B-", "S-"))
    model = begun_with_columns.run / "model"
    assert run("evaluate", model, other, "--labels", "IOBES") == run("evaluate", model, held_out)


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("Anna NNP\n", (), "there are no gold labels"),
        ("Anna NNP B-ORG\nsleeps VBZ O\n", (), "gold.txt:1: unknown label 'B-ORG'"),
        ("Anna NNP O\n", ("--json", "nowhere/s.json"), "nowhere"),
        ("Anna NNP O\n", ("--lables", "IOB1"), "did you mean --labels?"),
    ],
)
def test_mistakes(fails, begun_with_columns, tmp_path, text, options, complaint):
    (tmp_path / "gold.txt").write_text(text)
    assert complaint in fails("evaluate", begun_with_columns.run / "model", tmp_path / "gold.txt", *options)
