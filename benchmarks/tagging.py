"""Tagging with local models: of sentences in memory, against python-crfsuite's tagger, and of a file by the command.

The models are averaged perceptrons of two epochs: with the node features and plain transitions of `benchmarks.epoch`,
and, where there is a folder of corpora, with Table 1 of Kazama & Torisawa 2007 and gazetteers on nodes and edges. What
is labelled is the development data, many times over, each time in strings of its own. Time from memory is from strings
to strings, features included; that of the peer begins with the names of the features, which cost it nothing here. Time
of the command is that of its process, start and loading included.
"""

import logging
import os
import subprocess
import sys
import tempfile
import time
from itertools import chain, repeat
from pathlib import Path

import pycrfsuite
import pytorch_lightning as pl

from benchmarks.epoch import TEMPLATES, CRFsuite, _data, _tagger
from benchmarks.extraction import LISTS
from structperc.data import Corpus, write_conll
from structperc.datamodules import SequenceDataModule
from structperc.features import FeatureExtractor, Gazetteer
from structperc.taggers import Tagger

EPOCHS, TIMES = 2, 5
TOKENS = 1_000_000
MEMORY, FILE = "500000 tokens/s", "100000 tokens/s"  # targets


def run(smoke: bool) -> list[dict]:
    """Return tokens/s from memory and of the command, then from memory with features of edges."""
    data, name = _data(smoke)
    corpus, times = _repeated(data.corpus("dev"), 1 if smoke else TOKENS), 1 if smoke else TIMES
    features = FeatureExtractor(TEMPLATES, progress=False)
    tagger = _trained(features, data)
    size = f"{corpus.tokens} tokens of {name}, {features.n_node_features} node features, plain transitions"
    with tempfile.TemporaryDirectory() as folder:
        text = str(Path(folder) / "text")
        write_conll(text, corpus, tagger.columns)
        ours, peer = corpus.tokens / _from_memory(tagger, text, times), _peer(data, features, times)
        rows = [_row("tagging from memory, strings to strings", size, ours, MEMORY, peer)]
        rows.append(_row("structperc tag, file to file", size, corpus.tokens / _command(tagger, text, times), FILE))
        if name == "CoNLL-2003":
            size = f"{corpus.tokens} tokens of {name}, Table 1 and gazetteers on nodes and edges"
            ours = corpus.tokens / _from_memory(_trained(_with_lists(), data), text, times)
            rows.append(_row("tagging from memory, strings to strings", size, ours))
    return rows


def _with_lists() -> FeatureExtractor:
    folder = Path(os.environ["STRUCTPERC_DATA"]) / "gazetteers"
    lists = {attribute: Gazetteer(folder / f"{file}.txt") for attribute, file in LISTS.items()}
    templates = [*TEMPLATES, "kazama2007_gazetteers"]
    return FeatureExtractor(templates, templates, gazetteers=lists, progress=False)


def _trained(features: FeatureExtractor, data: SequenceDataModule) -> Tagger:
    features.fit(data.corpus("train"))
    tagger = _tagger(features, data.label_set())
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    pl.Trainer(max_epochs=EPOCHS, accelerator="cpu", limit_val_batches=0, **quiet).fit(tagger, datamodule=data)
    return tagger.eval()


def _from_memory(tagger: Tagger, text: str, times: int) -> float:
    """Seconds from sentences as {column: strings} to labels."""
    blocks = Path(text).read_text(encoding="utf-8").split("\n\n")
    rows = (zip(*(line.split(" ") for line in block.split("\n")), strict=True) for block in blocks if block)
    sentences = [dict(zip(tagger.columns, map(list, columns), strict=True)) for columns in rows]
    tagger.tag(sentences[:10])  # loads what is compiled
    return min(_seconds(tagger.tag, sentences) for _ in range(times))


def _peer(data: SequenceDataModule, features: FeatureExtractor, times: int) -> float:
    """Tokens/s of python-crfsuite's tagger on the same features, whose names are made before."""
    peer = CRFsuite(data, features, EPOCHS)
    peer.run(lambda: None)
    tagger, sentences = pycrfsuite.Tagger(), peer._strings(data.encoded("dev"))
    tagger.open(str(Path(peer.folder.name) / "model"))
    return data.corpus("dev").tokens / min(_seconds(list, map(tagger.tag, sentences)) for _ in range(times))


def _command(tagger: Tagger, text: str, times: int) -> float:
    """Seconds of the command's process."""
    with tempfile.TemporaryDirectory() as folder:
        model, labelled = (str(Path(folder) / name) for name in ("model", "labelled"))
        tagger.save(model)
        command = [sys.executable, "-m", "structperc", "tag", model, text, "-o", labelled]
        return min(_seconds(subprocess.check_call, command) for _ in range(times))


def _repeated(corpus: Corpus, tokens: int) -> Corpus:
    """The columns but the labels, as often as it takes to have so many tokens."""
    text = {role: corpus.sentences_of(values) for role, values in corpus.columns.items() if role != "label"}
    sentences = [dict(zip(text, values, strict=True)) for values in zip(*text.values(), strict=True)]
    return Corpus.from_sentences(chain.from_iterable(repeat(sentences, -(-tokens // corpus.tokens))))


def _seconds(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def _row(what: str, size: str, ours: float, target: str | None = None, peer: float | None = None) -> dict:
    ratio = ours / peer if peer else None
    return {
        "what": what,
        "size": size,
        "ours": ours,
        "peer": peer,
        "ratio": ratio,
        "unit": "tokens/s",
        "target": target,
    }
