"""The page of other taggers and the README have the figures that the scripts in benchmarks/taggers have written."""

import re

import pytest
import yaml

from benchmarks.taggers import first, results, system_run
from tests.docs.written import PAGES, ROOT

FOLDER = ROOT / "benchmarks" / "taggers"
RESULTS = FOLDER / "results"


@pytest.mark.parametrize("name", ["entities_3000", "parts_of_speech", "curve"])
def test_tables_are_those_of_the_files(name):
    assert results.table(RESULTS / f"{name}.json") in PAGES["results/other_taggers"]


def test_readme_has_figures_of_the_table():
    lines = results.table(RESULTS / "entities_3000.json").splitlines()
    rows = {cells[1]: cells for cells in (re.split(r" *\| *", line) for line in lines)}
    part = PAGES["README"].partition("## Next to other systems")[2].partition("\n## ")[0]
    shown = [re.split(r" *\| *", line)[1:-1] for line in re.findall(r"^\| (?!\|)[a-zA-Z].*$", part, re.MULTILINE)]
    columns = [rows[""].index(head) for head in ("dev", "news2020", "model MB")]
    assert len(shown) == 6
    assert shown == [[name, *(rows[name][column] for column in columns)] for name, *_ in shown]


def test_study_names_every_row_of_the_results():
    study = yaml.safe_load((FOLDER / "entities.yaml").read_text(encoding="utf-8"))
    lines = results.table(RESULTS / "entities_3000.json").splitlines()[2:]
    assert {line.split(" | ")[0].removeprefix("| ") for line in lines} <= study["rows"].keys()


def test_results_contain_no_words():
    texts = [file.read_text(encoding="utf-8") for file in RESULTS.glob("*.json")]
    keys = {key for text in texts for key in re.findall(r'^ +"(\w+)": "', text, re.MULTILINE)}
    assert all("-DOCSTART-" not in text and "B-PER" not in text for text in texts)
    packages = ["flair", "nltk", "structperc", "spacy", "thinc", "torch", "transformers", "span_marker", "gensim"]
    assert keys <= {"baseline", *packages}


def test_predictions_round_trip(tmp_path):
    text = "-DOCSTART- O\n\nAda I-PER\nmet O\n\nRome I-LOC\n\n-DOCSTART- O\n\nBo I-PER\nAl B-PER\n"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    sentences = system_run.read_sentences(str(tmp_path / "text.txt"))
    assert [s.labels for s in sentences] == [["B-PER", "O"], ["B-LOC"], ["B-PER", "B-PER"]]
    assert [s.document for s in sentences] == [1, 1, 2]
    system_run.write_predictions(tmp_path / "out.conll", sentences, [["O", "O"], ["B-LOC"], ["O", "B-PER"]])
    again = system_run.read_sentences(str(tmp_path / "out.conll"), column=1)
    assert again == sentences


def test_first_sentences(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(first.first(["-DOCSTART- O", "", "a O", "", "b O", "c O", ""], 2)))
    assert [s.words for s in system_run.read_sentences(str(tmp_path / "a.txt"))] == [["a"], ["b", "c"]]


def test_spans_and_labels():
    labels = ["B-PER", "I-PER", "B-PER", "O", "B-LOC"]
    assert system_run.labels_of_spans(system_run.spans(labels), 5) == labels
    assert system_run.labels_of_spans([(0, 2, "PER"), (1, 3, "LOC")], 3) == ["B-PER", "I-PER", "O"]
