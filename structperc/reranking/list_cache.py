"""Candidate lists and first models on disk, in a folder whose name stands for what they were made from."""

import hashlib
import inspect
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from structperc.class_paths import class_path_of
from structperc.data.corpus import Corpus
from structperc.data.output import write_lines
from structperc.data.text_files import expand_path
from structperc.datamodules.base import SequenceDataModule
from structperc.encoders import TextModule
from structperc.errors import InputError
from structperc.reranking.lists import CandidateLists
from structperc.taggers.saving import describe, described, without_learned
from structperc.taggers.tagger import Tagger

FORMAT = 1  # of the folder, and of what its name is made from
COUNTED = ("vocabularies", "buckets")  # of the state of features what they have from a corpus

logger = logging.getLogger("pytorch_lightning.structperc")


class ListCache:
    """The files of a cache: fold-1.safetensors, fold-2.safetensors, ...

    And the final first model, each whole or not there.

    Args:
        folder: the folder of one configuration.
        trusted: modules whose classes the first model is made of, see `Tagger.load`.
    """

    def __init__(self, folder: Path, trusted: Iterable[str] = ()) -> None:
        self.folder, self.trusted = folder, tuple(trusted)

    def lists(self, fold: int, lengths: np.ndarray, n: int) -> tuple[CandidateLists, float] | None:
        """Return the lists of a fold and the seconds they took; None if there are none for these lengths and n."""
        path = self._fold(fold)
        if not path.exists():
            return None
        try:
            lists, about = CandidateLists.load(path)
            if lists.k != n or lists.lengths.tolist() != lengths.tolist():
                raise InputError(f"{path}: lists of other sequences")
            return lists, float(about["seconds"])
        except InputError as error:
            logger.warning("%s; it is made anew", error)
            return None

    def keep_lists(self, fold: int, lists: CandidateLists, seconds: float) -> None:
        """Write the lists of a fold and the seconds they took."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lists.save(self._fold(fold), {"seconds": seconds})

    def tagger(self) -> tuple[Tagger, float] | None:
        """Return the final first model and the seconds of its training, or None where there is none to be read."""
        if not self._tagger.exists():
            return None
        try:
            about = json.loads(self._about.read_text(encoding="utf-8"))
            if about["digest"] != folder_digest(self._tagger):
                raise InputError(f"{self._tagger}: not the model that was written here (its checksum is wrong)")
            return Tagger.load(self._tagger, trusted=self.trusted), float(about["seconds"])
        except (InputError, OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s; the first model is trained anew", " ".join(str(error).split()))
            return None

    def keep_tagger(self, tagger: Tagger, seconds: float) -> None:
        """Write the final first model and the seconds of its training."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tagger.save(self._tagger)
        write_lines(self._about, [json.dumps({"seconds": seconds, "digest": folder_digest(self._tagger)})])

    def _fold(self, fold: int) -> Path:
        return self.folder / f"fold-{fold}.safetensors"

    @property
    def _tagger(self) -> Path:
        return self.folder / "first"

    @property
    def _about(self) -> Path:
        return self.folder / "first.json"


def folder_digest(folder: Path) -> str:
    """Return a checksum of the files in a folder."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        total.update(f"{path.name} {file_digest(path)}\n".encode())
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(first: Tagger, data: SequenceDataModule, callbacks: Sequence[Any], options: dict[str, Any]) -> str:
    """Return 16 hexadecimal digits for a first model's configuration, its training data and further options.

    What the model has learned before does not count. Raises InputError for a callback whose options cannot be read off.
    """
    features = {name: value for name, value in first.features.state_dict_json().items() if name not in COUNTED}
    features["documents"] = without_learned(features["documents"])
    corpus = data.corpus("train")
    about = {
        "format": FORMAT,
        "first": unlearned_description(first),
        "optimizer": describe_optimizer(first.optimizer),
        **({"lr_scheduler": described} if (described := describe_schedule(first)) else {}),
        "prior": first.prior and describe(first.prior),
        "features": features,
        "corpus": corpus_digest(corpus, columns_read(first, corpus)),
        "data": [data.unit, data.scheme, data.batch_size, data.shuffle, data.seed],
        "callbacks": [_describe_callback(callback) for callback in callbacks],
        **({"files": files} if (files := outside_digests(first)) else {}),
        **options,
    }
    return hashlib.sha256(_json(about).encode()).hexdigest()[:16]


def unlearned_description(first: Tagger) -> dict[str, Any]:
    """Return the description of a tagger without what its text modules have learned."""
    return without_learned(first.description())


def text_modules(first: Tagger) -> list[TextModule]:
    """Return the parts of a tagger that read text."""
    return [module for module in first.modules() if isinstance(module, TextModule)]


def columns_read(first: Tagger, corpus: Corpus) -> list[str]:
    """Return the roles of the columns on which the training of a tagger depends; text modules may read any."""
    return list(corpus.columns) if text_modules(first) else [*first.features.columns, "label"]


def outside_digests(first: Tagger) -> list[str]:
    """Return checksums of the files and folders from which text modules learn, beside the training data."""
    places = [expand_path(place) for module in text_modules(first) for place in module.places()]
    return [folder_digest(p) if p.is_dir() else file_digest(p) for p in places if p.exists()]


def describe_optimizer(make: Callable[[Iterable[Any]], Optimizer]) -> dict[str, Any]:
    """Return {class_path, init_args} of the optimizers that `make` makes."""
    made = make([nn.Parameter(torch.zeros(1))])
    options = {name: value for name, value in made.param_groups[0].items() if name != "params"}
    return {"class_path": class_path_of(type(made)), "init_args": options}


def describe_schedule(first: Tagger) -> dict[str, Any] | None:
    """Return {class_path, state} of the schedule of a tagger's learning rates before the first step, if it has one."""
    if first.lr_scheduler is None:
        return None
    made = first.lr_scheduler(first.optimizer([nn.Parameter(torch.zeros(1))]))
    return {
        "class_path": class_path_of(type(made)),
        "state": {name: str(own) for name, own in made.state_dict().items()},
    }


def corpus_digest(corpus: Corpus, roles: Iterable[str]) -> str:
    """Return a checksum of some columns of a corpus and of all its boundaries."""
    total = hashlib.sha256()
    for role in sorted(set(roles)):
        total.update(f"{role}\0{chr(0).join(corpus.columns.get(role, []))}\0".encode("utf-8", "surrogatepass"))
    for limits in (corpus.starts, corpus.sentences, corpus.documents):
        total.update(np.asarray(limits, np.int64).tobytes())
    return total.hexdigest()


def _describe_callback(callback: Any) -> dict[str, Any]:
    options = list(inspect.signature(type(callback)).parameters)
    lost = [name for name in options if not hasattr(callback, name)]
    if lost:
        name = type(callback).__name__
        raise InputError(f"jackknife.callbacks: {name} does not keep its option {lost[0]!r}; leave it out")
    kept = {name: described(getattr(callback, name)) for name in options}  # `describe` reads classes of parts alone
    return {"class_path": class_path_of(type(callback)), "init_args": kept}


def _json(about: dict[str, Any]) -> str:
    try:
        return json.dumps(about, sort_keys=True)
    except TypeError as error:
        raise InputError(f"jackknife: options of the first model must be plain values ({error})") from None
