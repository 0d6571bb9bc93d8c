"""The weights that a training ends with."""

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from structperc.optim import learner
from structperc.taggers.checkpoints import load_weights
from structperc.taggers.sequence_tagger import SequenceTagger


def serve(trainer: pl.Trainer) -> None:
    """Leave in the model what its optimizers serve: averages, or the weights of the lowest objective."""
    for optimizer in trainer.optimizers:
        learner(optimizer).swap_in()


def serve_best(trainer: pl.Trainer, model: SequenceTagger, checkpoints: ModelCheckpoint) -> int | None:
    """Leave the weights that are kept in the model; return their epoch, None where none was chosen."""
    path = checkpoints.best_model_path
    if checkpoints.monitor is not None and path:
        return load_weights(model, model.vocabulary(), path)
    serve(trainer)
    return None
