"""The lines that are printed before the first epoch of a training."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytorch_lightning as pl

from structperc.batching.sequence_data import SequenceData
from structperc.spelling import counted
from structperc.taggers.sequence_tagger import SequenceTagger
from structperc.training.cost import parameters

logger = logging.getLogger("pytorch_lightning.structperc")


class Opening(pl.Callback):
    """Says where a run is kept, and how large its data and its model are.

    Args:
        run: its folder.
    """

    def __init__(self, run: Path) -> None:
        self.run = run

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Print the lines, in the first process; all sizes are known by now."""
        assert isinstance(pl_module, SequenceTagger)
        if trainer.is_global_zero:
            for line in opening_lines(self.run, trainer.datamodule, pl_module):  # type: ignore[attr-defined]
                logger.info(line)


def opening_lines(run: Path, data: SequenceData, tagger: SequenceTagger) -> Iterator[str]:
    """Yield three lines about a run, the encoded corpora of its data, and a tagger whose sizes are known."""
    sizes = [f"{split} {len(data.corpus(split)):,}" for split in ("train", "dev", "test") if data.has(split)]
    yield f"run: {run}"
    yield f"data: {', '.join(sizes)} {data.unit}s"
    yield f"model: {parameters(tagger):,} weights, {counted(len(tagger.labels), 'label')}"
