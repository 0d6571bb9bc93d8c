"""The documents that several benchmarks read."""

import os
from pathlib import Path

from structperc.data import Conll, Synthetic
from structperc.datamodules import SequenceDataModule


def documents(smoke: bool) -> tuple[SequenceDataModule, str]:
    """CoNLL-2003 where there is a folder of corpora, else the embedded corpus; documents."""
    if smoke or "STRUCTPERC_DATA" not in os.environ:
        return Synthetic(train=40, dev=10, test=1, unit="document"), "the embedded corpus"
    files, columns = {"train": "eng.train", "dev": "eng.testa"}, ["word", "pos", "chunk", "label"]
    folder = Path(os.environ["STRUCTPERC_DATA"]) / "conll2003"
    return Conll(str(folder), files, columns, labels="IOB1", scheme="IOB2", unit="document"), "CoNLL-2003"
