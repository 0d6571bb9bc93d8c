"""The program as users run it: fit, resume, test, predict."""

import json

from structperc.cli.main import main
from structperc.errors import InputError
from structperc.training import program
from structperc.training.run_folders import next_run
from tests.checkpoints import assert_same_training, checkpoint
from tests.tiny import without_names


def test_two_epochs_equal_one_resumed_bit_for_bit(runs):
    assert runs("fit", "--trainer.max_epochs=2") == 0
    assert runs("fit", "--trainer.max_epochs=1") == 0
    assert runs("fit", "--trainer.max_epochs=2", "--ckpt_path=last") == 0
    assert not (runs.root / "3").exists()
    assert_same_training(runs.root / "1", runs.root / "2")


def test_score_of_averaged_weights(trained, capsys):
    assert trained.again("test", "--ckpt_path=best") == 0
    printed = capsys.readouterr().out
    results = json.loads((trained.folder / "results.json").read_text())
    assert f"FB1:  {100 * results['test']['score']:.2f}" in printed


def test_fit_writes_the_predictions_of_its_model(trained):
    """Those that predict writes, with the scores that fit printed."""
    path = trained.folder / "predictions" / "test.conll"
    written = path.read_text()
    assert trained.again("predict", "--ckpt_path=best", "--data.predict=test") == 0
    assert path.read_text() == written
    assert written.startswith("#columns=word,pos,chunk,evidence,label,predicted -X- -X- -X- O O\n\n-DOCSTART- -X- ")
    rows = [line.split() for line in without_names(written).splitlines() if line and "DOCSTART" not in line]
    assert {len(row) for row in rows} == {6}
    right = sum(row[-1] == row[-2] for row in rows) / len(rows)
    assert right == json.loads((trained.folder / "results.json").read_text())["test"]["token_accuracy"]


def test_words_that_cannot_be_written(runs, monkeypatch, caplog):
    def refuse(*_):
        raise InputError("'two words' cannot be a CoNLL field")

    monkeypatch.setattr(program, "write_predictions", refuse)
    with caplog.at_level("WARNING"):
        assert runs("fit", "--trainer.max_epochs=1") == 0
    assert "'two words'" in caplog.text
    assert (runs.root / "1" / "results.json").is_file()


def test_holdout(runs):
    options = ("--trainer.max_epochs=1", "--data.dev=0", "--data.batch_size=4")
    assert runs("fit", *options, "--data.holdout=5") == 0
    assert runs("fit", *options, "--data.train=15") == 0
    held, plain = runs.root / "1", runs.root / "2"
    assert "dev" in json.loads((held / "results.json").read_text())
    assert (held / "predictions" / "dev.conll").is_file()
    assert not (plain / "predictions" / "dev.conll").exists()
    assert checkpoint(held)["global_step"] == checkpoint(plain)["global_step"] == 4  # 15 documents in batches of 4


def test_saved_configuration(trained):
    before = {p.name for p in trained.again.root.iterdir()}
    assert main(["fit", "-c", str(trained.folder / "logs" / "version_0" / "config.yaml")]) == 0
    (new,) = {p.name for p in trained.again.root.iterdir()} - before
    assert new.isdigit()
    assert (trained.again.root / new / "model" / "model.json").is_file()


def test_runs_never_share_a_folder(tmp_path):
    assert next_run(tmp_path / "new").name == "1"
    for name in ("1", "2", "10", "notes"):
        (tmp_path / name).mkdir()
    assert next_run(tmp_path).name == "11"


def test_best_and_last_share_a_file(runs):
    assert runs("fit", "--trainer.max_epochs=1") == 0
    folder = runs.root / "1" / "checkpoints"
    assert (folder / "best.ckpt").samefile(folder / "last.ckpt")
    assert runs("fit", "--trainer.max_epochs=2", "--checkpoint.mode=min") == 0
    folder = runs.root / "2" / "checkpoints"
    assert not (folder / "best.ckpt").samefile(folder / "last.ckpt")
    assert (checkpoint(folder.parent, "best")["epoch"], checkpoint(folder.parent)["epoch"]) == (0, 1)
    assert sorted(path.name for path in folder.iterdir()) == ["best.ckpt", "last.ckpt"]
