"""structperc study: its table and decisions from results that are made up, and what is found before training."""

import csv
import json
import re
from pathlib import Path
from statistics import stdev

import pytest
from filelock import FileLock
from scipy.stats import binom, ttest_rel

from structperc.cli.main import main
from structperc.experiments import experiment, study_file
from structperc.experiments.experiment import ExperimentRow
from structperc.experiments.study_file import Task, digests
from structperc.experiments.study_report import RowResults, markdown, study_lines, type_columns

CONFIGS = Path(__file__).parents[2] / "configs"
SMALL = {"data": {"train": 20, "dev": 8, "test": 8}, "trainer": {"accelerator": "cpu"}}
SENTENCES = 6  # of the text that made-up runs label, two tokens each

INTERVAL = ("difference_low", "difference_high")  # 95 %, over documents


class Studies:
    """Studies on a tiny embedded corpus, whose trainings only leave results and predictions."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys, self.commands = folder, capsys, []
        self.scores = {}  # (row, seed) -> score, or a complaint; by default 0.5
        self.wrong = {}  # (row, seed) -> number of sentences whose first token is wrong; by default 0
        self.words = "w"
        self.labels = {}  # row -> the gold label of the first token of each sentence
        self.marked = set()  # rows whose predictions mark a document before each third sentence
        self.rows = {"base": {}, "other": {}}
        self.top = {"seeds": [1, 2], "with": SMALL}

    @property
    def root(self):
        return self.folder / "root"

    def fit(self, command, folder):
        key = folder.parent.name, int(folder.name.removeprefix("seed="))
        self.commands.append(command)
        score = self.scores.get(key, 0.5)
        if isinstance(score, str):
            return score
        run = folder / "1"
        (run / "predictions").mkdir(parents=True)
        shares = {"score": score, "precision": score / 2, "recall": 0.25, "sentence_accuracy": score / 4}
        costs = {"epochs": 3, "seconds": 10.0 * key[1], "parameters": 1234, "peak_memory_mb": 500.0}
        types = {"dev": {"PER": {"score": score / 5, "gold": 7}}}
        costs |= {"train_sequences": 20, "tokens_per_second": {"dev": 2000.0, "test": 1.0}}
        results = {**costs, "dev": shares, "types": types}
        (run / "results.json").write_text(json.dumps(results))
        wrong, label = self.wrong.get(key, 0), self.labels.get(key[0], "B-X")
        found = ["O" if i < wrong else label for i in range(SENTENCES)]
        lines = [f"{self.words} {label} {one}\n{self.words} O O\n\n" for one in found]
        if key[0] in self.marked:
            lines = [("" if i % 3 else "-DOCSTART- O O\n\n") + line for i, line in enumerate(lines)]
        (run / "predictions" / "dev.conll").write_text("".join(lines))
        return None

    def __call__(self, status=0, **top):
        """Runs the study; -> what it printed, or its complaint."""
        rows = {name: {"configs": [str(CONFIGS / "quickstart.yaml")], **row} for name, row in self.rows.items()}
        file = self.folder / "study.yaml"
        file.write_text(json.dumps({**self.top, **top, "rows": rows}))
        self.commands.clear()
        self.capsys.readouterr()
        assert main(["study", str(file), "--root", str(self.root)]) == status
        out, err = self.capsys.readouterr()
        return err.strip().splitlines()[-1] if status else out

    def table(self, name):
        with open(self.root / name, newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    def column(self, name, key):
        return [row[key] and float(row[key]) for row in self.table(name)]


@pytest.fixture
def checked(parts_made_once, tmp_path, capsys, monkeypatch):
    made = Studies(tmp_path, capsys)
    monkeypatch.setattr(experiment, "fit", made.fit)
    return made


@pytest.fixture
def drawn(checked, monkeypatch):
    """Whose configurations are known to be good, which takes a second each to find out."""
    monkeypatch.setattr("structperc.experiments.studies.check_study", lambda _: Task("", "", "F1"))
    return checked


@pytest.fixture
def studies(drawn, monkeypatch):
    """Without the figure of each study, which takes most of the time."""
    monkeypatch.setattr("structperc.experiments.studies.plot_study", lambda *_: None)
    monkeypatch.setattr("structperc.experiments.studies.write_figure", lambda *_: None)
    return drawn


def sign_test(one, other):
    """Two-sided, of so many items that one alone got right."""
    return min(1.0, 2 * binom.cdf(min(one, other), one + other, 0.5))


# -- the table ------------------------------------------------------------------------------------------------


def test_means_and_deviations_over_seeds(studies):
    studies.scores = {("base", 1): 0.5, ("base", 2): 0.75, ("other", 1): 0.25, ("other", 2): 0.25}
    text = studies()
    assert studies.column("study.csv", "score") == [0.625, 0.25]
    assert studies.column("study.csv", "score_sd") == [pytest.approx(stdev([0.5, 0.75])), 0]
    assert studies.column("study.csv", "sentence_accuracy") == [0.625 / 4, 0.25 / 4]
    assert studies.column("study.csv", "score/PER") == [0.125, 0.05]
    for key, mean in {"seconds": 15, "epochs": 3, "parameters": 1234, "tokens_per_second": 2000}.items():
        assert studies.column("study.csv", key) == [mean] * 2
    assert studies.column("runs.csv", "score") == [0.5, 0.75, 0.25, 0.25]
    assert studies.column("runs.csv", "seed") == [1, 2, 1, 2]
    lines = [line.split() for line in text.splitlines() if line.startswith(("base  ", "other  "))]
    assert lines[0][1:5] == ["62.50", "±", "17.68", "31.25"]
    assert lines[1][1:4] == ["25.00", "±", "0.00"]
    assert [line[1] for line in lines[-2:]] == ["12.50", "5.00"]  # by type


def test_files_of_a_study(drawn):
    drawn.rows["a|b"] = {"seeds": [1]}
    text = drawn()
    assert (drawn.root / "study.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((drawn.root / "study.json").read_text())
    assert (record["baseline"], record["split"], record["measure"]) == ("base", "dev", "F1")
    assert [(run["row"], run["seed"]) for run in record["runs"]][-2:] == [("other", 2), ("a|b", 1)]
    assert all(run["command"].startswith("structperc fit '--config=") for run in record["runs"])
    assert record["rows"][0]["numbers"]["score"] == 0.5
    written = (drawn.root / "study.md").read_text().splitlines()
    assert "dev split" in written[0]
    table = [line for line in written if line.startswith("|")]
    cells = [line.replace("\\|", "").count("|") for line in table]
    assert cells[:5] == [cells[0]] * 5
    columns = (
        "F1",
        "precision",
        "recall",
        "sentences",
        "95 %",
        "difference",
        "p documents",
        "p Holm",
        "p tokens",
        "p sentences",
        "parameters",
    )
    heads = [line for line in table if line.startswith("|  |")]
    assert "".join(line[4:] for line in heads).replace("||", "|").startswith(f" {' | '.join(columns)} |")
    assert table[4].startswith("| a\\|b | 50.00 | 25.00 |")
    assert heads[-1].startswith("|  | PER |")
    assert str(drawn.root / "study.md") in text


def test_page_of_several_studies(drawn, capsys, tmp_path):
    drawn()
    listed = {name: str(tmp_path / "study.yaml") for name in ("chunks", "a $ of names")}
    both, root = tmp_path / "both.yaml", tmp_path / "both"
    both.write_text(json.dumps({"studies": listed}))
    assert main(["study", str(both), "--root", str(root)]) == 0
    assert "8 runs" not in capsys.readouterr().out
    assert sorted(path.parent.parent.name for path in root.glob("*/base/row.json")) == ["a %24 of names", "chunks"]
    page = (root / "study.md").read_text()
    alone = (root / "chunks" / "study.md").read_text()
    assert page.startswith(f"## chunks\n\n{alone}")
    assert "## a $ of names" in page
    assert (root / "study.png").read_bytes().startswith(b"\x89PNG")
    both.write_text(json.dumps({"studies": listed, "seeds": [1]}))
    assert main(["study", str(both)]) == 2
    assert "both.yaml: " in capsys.readouterr().err
    both.write_text(json.dumps({"studies": ["chunks"]}))
    assert main(["study", str(both)]) == 2
    assert "both.yaml: studies: " in capsys.readouterr().err


def test_table_of_a_running_study(studies, monkeypatch):
    whole = studies.fit

    def stopped(command, folder):
        if "other" in str(folder):
            raise KeyboardInterrupt
        return whole(command, folder)

    monkeypatch.setattr(experiment, "fit", stopped)
    assert "interrupted" in studies(status=1)
    assert studies.column("study.csv", "score") == [0.5]
    assert "| base |" in (studies.root / "study.md").read_text()
    monkeypatch.setattr(experiment, "fit", whole)
    text = studies()
    assert text.count("(kept)") == 2
    assert studies.column("study.csv", "score") == [0.5, 0.5]


def test_blocks_of_a_table():
    keys = [f"score/TYPE{i}" for i in range(7)]
    line = RowResults(ExperimentRow("some name", "fit", [], [], [1]), [], [dict.fromkeys(keys, 0.5)])
    printed = list(study_lines([line], type_columns([line]), width=40))
    assert max(map(len, printed)) <= 40
    assert printed.count("") == 1
    assert sum(row.split().count("50.00") for row in printed) == 7
    assert all(row.startswith(("some name ", "  ")) for row in printed if row)
    wide = list(study_lines([line], type_columns([line]), width=200))
    assert len(wide) == 2
    (head,) = [text for text in markdown([line], "F1", "dev", "A").splitlines() if "TYPE0" in text]
    assert [text.strip() for text in head.split("|")[2:-1]] == [f"TYPE{i}" for i in range(7)]


# -- McNemar --------------------------------------------------------------------------------------------------


def test_comparison_by_seed(studies):
    """The base is wrong in the first 5 and 6 sentences, the other one in the first 0 and 3."""
    studies.wrong = {("base", 1): 5, ("base", 2): 6, ("other", 1): 0, ("other", 2): 3}
    studies()
    wanted = [sign_test(5, 0), sign_test(3, 0)]
    assert wanted == [0.0625, 0.25]
    assert studies.column("runs.csv", "p_sentences") == ["", "", *wanted]
    assert studies.column("runs.csv", "p_tokens") == ["", "", *wanted]  # one token per sentence is wrong
    assert studies.column("study.csv", "p_tokens") == ["", 0.25]  # of two the larger one


def test_the_table_has_the_median_over_seeds(studies):
    studies.wrong = {("base", seed): 6 for seed in (1, 2, 3)} | {("other", seed): seed for seed in (1, 2, 3)}
    studies(seeds=[1, 2, 3])
    ps = [sign_test(5, 0), sign_test(4, 0), sign_test(3, 0)]
    assert studies.column("runs.csv", "p_tokens")[3:] == ps
    assert studies.column("study.csv", "p_tokens") == ["", sorted(ps)[1]]


def test_test_over_seeds_and_documents(studies):
    """Scores and predictions of the other row are better with each seed; sentences stand for documents here."""
    seeds = [1, 2, 3]
    studies.scores = {("base", seed): 0.5 for seed in seeds} | {("other", seed): 0.5 + seed / 10 for seed in seeds}
    studies.wrong = {("base", seed): 6 for seed in seeds} | {("other", seed): seed for seed in seeds}
    text = studies(seeds=seeds)
    assert "p seeds" in text
    assert "p documents" in text
    wanted = ttest_rel([0.6, 0.7, 0.8], [0.5, 0.5, 0.5]).pvalue
    assert studies.column("study.csv", "p_seeds") == ["", pytest.approx(wanted)]
    (_, p), (_, low), (_, high) = (studies.column("study.csv", name) for name in ("p_documents", *INTERVAL))
    assert 0 < p < 0.05
    assert 0 < low < studies.column("study.csv", "difference")[1] < high
    kept = json.loads((studies.root / "study.json").read_text())["rows"][1]["numbers"]
    assert kept["p_seeds"] == pytest.approx(wanted)
    assert kept["p_documents"] == pytest.approx(p)


def test_learning_curves_are_compared_at_each_size(studies):
    studies.scores = {("base, 10", seed): 0.25 for seed in (1, 2)} | {("base, all", seed): 0.75 for seed in (1, 2)}
    studies.wrong = {("base, 10", 1): 5, ("base, 10", 2): 5, ("other, all", 1): 6, ("other, all", 2): 6}
    text = studies(train_sizes=[10, None])
    assert [row["row"] for row in studies.table("study.csv")] == ["base, 10", "other, 10", "base, all", "other, all"]
    assert studies.column("study.csv", "p_tokens") == ["", sign_test(5, 0), "", sign_test(6, 0)]
    small, large = studies.column("study.csv", "difference")[1::2]
    assert small > 0 > large
    assert studies.column("study.csv", "train_sequences") == [20] * 4
    assert " sequences " in next(line for line in text.splitlines() if "precision" in line)
    sizes = [next(one for one in command if "train_size" in one) for command in studies.commands]
    assert sizes == ["--data.train_size=10"] * 4 + ["--data.train_size=null"] * 4


def test_rows_with_different_documents_have_no_test_over_them(studies):
    studies.marked = {"other"}
    studies.scores = {("base", 1): 0.4, ("base", 2): 0.3}
    assert "p documents" not in studies()
    assert studies.column("study.csv", "p_seeds") == ["", pytest.approx(ttest_rel([0.5, 0.5], [0.4, 0.3]).pvalue)]
    assert studies.column("runs.csv", "p_tokens") == ["", "", 1, 1]


def test_row_of_one_seed(studies):
    studies.rows["other"] = {"seeds": [1]}
    studies.scores = {("base", 1): 0.4, ("base", 2): 0.3, ("other", 1): 0.5}
    studies()
    assert studies.column("study.csv", "p_seeds") == ["", pytest.approx(ttest_rel([0.5, 0.5], [0.4, 0.3]).pvalue)]


def test_baseline_of_one_seed(studies):
    studies.rows["base"] = {"seeds": [9]}
    studies.wrong = {("base", 9): 6, ("other", 1): 1, ("other", 2): 6}
    studies()
    assert studies.column("runs.csv", "p_tokens") == ["", sign_test(5, 0), 1]


def test_seeds_without_baseline(studies):
    studies.rows["other"] = {"seeds": [2, 3]}
    studies.scores = {("base", 1): "diverged"}
    studies()
    assert studies.column("runs.csv", "p_tokens") == ["", "", 1, ""]


def test_another_baseline(studies):
    studies.wrong = {("base", 1): 5, ("base", 2): 5}
    studies(baseline="other")
    assert studies.column("study.csv", "p_sentences") == [0.0625, ""]


def test_a_run_without_predictions_has_no_test(studies):
    studies()
    (studies.root / "other" / "seed=1" / "1" / "predictions" / "dev.conll").unlink()
    studies()
    assert studies.column("runs.csv", "p_tokens") == ["", "", "", 1]


def test_predictions_of_changed_text(studies):
    studies.rows = {"base": {}}
    studies()
    studies.rows["other"], studies.words = {}, "v"
    message = studies(status=2)
    assert "other/seed=1/1: " in message
    assert "--root" in message


# -- going on -------------------------------------------------------------------------------------------------


def test_only_missing_runs_are_trained(studies):
    studies.scores = {("base", 2): "diverged", ("other", 1): 0.75}
    text = studies()
    assert "[2/4] base, seed 2: failed: diverged" in text
    assert "[3/4] other, seed 1: dev score 75.00" in text
    assert "1 of 4 runs failed: base, seed 2." in text
    assert "1 of 2" in text
    assert len(studies.commands) == 4
    studies.scores[("base", 2)] = 0.75
    text = studies()
    assert [command[-1].rpartition("/")[2] for command in studies.commands] == ["seed=2"]
    assert text.count("(kept)") == 3
    assert "failed" not in text
    assert studies.column("study.csv", "runs") == [2, 2]


def test_rows_and_seeds_may_be_added(studies):
    studies()
    studies.rows["new"] = {}
    text = studies(seeds=[1, 2, 3])
    assert len(studies.commands) == 5
    assert text.count("(kept)") == 4
    assert studies.column("study.csv", "runs") == [3, 3, 3]


def test_row_with_init_from(studies):
    studies.rows = {"base": {}, "once": {"seeds": [1]}, "other": {"init_from": "base"}, "more": {"init_from": "once"}}
    studies.scores = {("base", 2): "diverged"}
    text = studies()
    start = f"--model.init_from={studies.root}"
    options = [[one for one in command if one.startswith("--model.init_from=")] for command in studies.commands]
    once = [f"{start}/once/seed=1/1/model"]
    assert options == [[], [], [], [f"{start}/base/seed=1/1/model"], once, once]
    assert "other, seed 2: failed: the run it is initialised from (base, seed 2) failed" in text
    studies.scores = {}
    studies()
    options = [[one for one in command if one.startswith("--model.init_from=")] for command in studies.commands]
    assert options == [[], [f"{start}/base/seed=2/1/model"]]
    studies.rows["other"] = {}
    assert f"{studies.root / 'other'} was created with different configs and init_from; rename the row" in studies(
        status=2
    )


@pytest.mark.parametrize("row", [{"with": {"model": {"beta": 2}}}, {"configs": ["pkg:studies/embedded#margin"]}])
def test_row_with_changed_configuration(studies, row):
    studies()
    studies.rows = {"new": {}, "other": row}
    message = studies(status=2)
    assert f"{studies.root / 'other'} was created with different configs; rename the row" in message
    assert not studies.commands
    assert not (studies.root / "new").exists()
    assert len(studies.table("study.csv")) == 2


def test_every_run_fails(studies):
    studies.scores = {(row, seed): "diverged" for row in ("base", "other") for seed in (1, 2)}
    assert "base, seed 1: diverged" in studies(status=2)
    assert [row["error"] for row in studies.table("runs.csv")] == ["diverged"] * 4


def test_different_schemes(studies):
    studies.wrong = {("base", 1): 5, ("base", 2): 6, ("other", 1): 0, ("other", 2): 3}
    studies.labels["other"] = "U-X"
    studies()
    assert studies.column("runs.csv", "p_tokens")[2:] == [sign_test(5, 0), sign_test(3, 0)]
    studies.labels["third"], studies.rows["third"] = "U-Y", {}
    assert "gold labels" in studies(status=2)


def test_concurrent_studies(studies):
    studies()
    with FileLock(studies.root / ".lock"):
        assert f"{studies.root}: the folder is locked by another process" in studies(status=2)
    studies()


def test_rerankers_are_trained_by_rerank(checked):
    checked.rows = {"base": {}, "re-ranked": {"command": "rerank"}}
    checked.rows["re-ranked"]["configs"] = ["pkg:studies/embedded#reranking1"]
    checked(seeds=[4])
    assert [command[0] for command in checked.commands] == ["fit", "rerank"]
    assert {"--seed_everything=4", "--data.seed=4"} <= set(checked.commands[1])


# -- before training ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"with": {"model": {"nothing": 1}}}, "rows.other: .*model.nothing"),
        ({"with": {"model": {"search": {"k": 0}}}}, "rows.other: .*k must be >= 1"),
        ({"with": {"data": {"dev": 9}}}, "rows.other: its sentences or words of the dev split"),
        ({"with": {"data": {"corpus_seed": 5}}}, "rows.other: its sentences or words of the dev split"),
        ({"with": {"data": {"types": {"PER": "LOC"}}}}, "rows.other: its gold labels of the dev split"),
        ({"command": "rerank"}, "rows.other: "),
    ],
)
def test_mistakes_before_training(checked, row, named):
    checked.rows["other"] = row
    message = checked(status=2)
    assert message.startswith(f"structperc: error: {checked.folder}/study.yaml: rows.other: ")
    assert re.search(named, message)
    assert not checked.commands
    assert not checked.root.exists()


def test_documents_and_sentences_compare(checked):
    checked.rows["other"] = {"with": {"data": {"unit": "sentence"}}}
    assert "other, seed 2: dev score" in checked()


def test_rows_may_learn_different_schemes(checked):
    checked.rows["other"] = {"with": {"data": {"scheme": "IOBES", "labels": "IOB2"}}}
    assert "other, seed 2: dev score" in checked()


def test_shared_sequences(checked, monkeypatch):
    def counted(data, split):
        read.append(data.unit)
        return digests(data, split)

    read = []
    monkeypatch.setattr(study_file, "digests", counted)
    checked.rows |= {
        "one by one": {"with": {"data": {"batch_size": 1}}},
        "short": {"with": {"data": {"unit": "sentence"}}},
    }
    checked()
    assert read == ["document", "sentence"]


def test_missing_configuration(checked):
    checked.rows["other"] = {"configs": ["configs/none.yaml"]}
    assert "configs: no file " in checked(status=2)


def test_study_without_name(fails):
    assert "file" in fails("study")
