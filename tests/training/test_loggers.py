"""Where fit writes its logs: CSV unless another logger is named, in the folder of the run unless another is."""

import pytest
from lightning_fabric.loggers import tensorboard

from structperc.training.program import log_into


def test_given_folder(runs, tmp_path):
    assert runs("fit", "--trainer.max_epochs=1", f"--trainer.logger.save_dir={tmp_path / 'elsewhere'}") == 0
    assert (tmp_path / "elsewhere" / "logs" / "version_0" / "metrics.csv").is_file()
    assert not (runs.root / "1" / "logs").exists()


def test_no_logger_has_no_folder(runs, tmp_path):
    for logger in (False, True, None):
        log_into(logger, tmp_path)
    assert runs("fit", "--trainer.max_epochs=1", "--trainer.logger=false") == 0
    run = runs.root / "1"
    assert not (run / "logs").exists()
    assert not (run / "curves.png").exists()
    configuration, checkpoint = (run / "config.yaml").read_text(), next((run / "checkpoints").glob("*.ckpt"))
    assert runs("validate", "--trainer.logger=false", "--data.batch_size=3", f"--ckpt_path={checkpoint}") == 0
    assert (run / "config.yaml").read_text() == configuration


@pytest.mark.parametrize("logger", ["TensorBoardLogger", "[CSVLogger,TensorBoardLogger]"])
def test_missing_tensorboard(runs, fails, monkeypatch, logger):
    for name in ("_TENSORBOARD_AVAILABLE", "_TENSORBOARDX_AVAILABLE"):
        monkeypatch.setattr(tensorboard, name, False)
    message = fails(*runs.arguments("fit", f"--trainer.logger={logger}"))
    assert "TensorBoardLogger" in message
    assert "pip install" in message


def test_two_loggers(runs):
    assert runs("fit", "--trainer.max_epochs=1", "--trainer.logger=[CSVLogger,TensorBoardLogger]") == 0
    assert list((runs.root / "1" / "logs").glob("version_*/events.out.tfevents.*"))
    assert len(list((runs.root / "1" / "logs").glob("version_*/metrics.csv"))) == 1
