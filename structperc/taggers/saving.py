"""Saved models: a folder with model.json and model.safetensors, self-contained, no pickle, no code; and their card."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self, cast

import pytorch_lightning as pl
import torch
from huggingface_hub import PyTorchModelHubMixin, snapshot_download
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from structperc.builder import Builder
from structperc.class_paths import class_path_of
from structperc.data.labels import LabelSet
from structperc.data.output import atomic_folder, write_errors
from structperc.data.read_options import check_training_files
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.taggers.hub import CARD, model_card, push_folder, read_card
from structperc.taggers.model_format import (
    CONFIG,
    FEATURE_PREFIX,
    TRAINING_FILES,
    WEIGHTS,
    TableType,
    arrays_of_features,
    check_entries,
    model_errors,
)
from structperc.taggers.serialization import read_folder, write_folder

SPARE = 100  # weights that a model may have beside those that are saved
LEARNING = "criterion."  # what criteria keep in mind is of checkpoints, not of saved models


class SavedTagger(pl.LightningModule, PyTorchModelHubMixin, ABC):
    """A tagger as a folder: what is saved of it, and how it is made again from that.

    A subclass describes its parts.

    Args:
        features: templates and resources; their index is built from the training data. None: there are none.
    """

    loads: ClassVar[tuple[type, ...]] = ()  # further classes whose models `load` takes
    labels: LabelSet

    def __init__(self, features: FeatureExtractor | None) -> None:
        super().__init__()
        self.features = features or FeatureExtractor()
        self.fitted = False  # whether the labels are known and there are weights
        self.unit = "sentence"  # or "document": what one sequence is
        self.training_files: Mapping[str, Any] = {}  # how they were read, see `data.read_options`; empty: not known
        self.card: str | None = None  # the text of README.md that is saved; None: one of what is known by itself

    @abstractmethod
    def allocate(self, labels: LabelSet) -> None:
        """Create weights for these labels and the (fitted) features."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return class and options of every part but the features, as plain JSON types."""

    @classmethod
    @abstractmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> "SavedTagger":
        """Return the tagger, without weights, that `description` described.

        `build` makes its parts, or raises InputError.
        """

    def save(self, folder: str | Path, table: TableType = "float32") -> None:
        """Write the tagger with its present weights; the folder appears whole, or what was there stays.

        table: of the weights of features in the file. Whoever loads them has float32 again, rounded: float16 has 11
        bits of each, int8 whole numbers of 127ths of the largest one of a feature.

        Raises InputError with the reason if it cannot be written, and for weights that float16 cannot hold.
        """
        with write_errors(folder), atomic_folder(Path(folder)) as fresh:
            self._write(fresh, table)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return all that is saved of the tagger with its present weights: plain JSON types, and tensors by name."""
        config = {
            "class": class_path_of(type(self)),
            "labels": list(self.labels.names),
            "scheme": self.labels.scheme,
            "unit": self.unit,
            TRAINING_FILES: dict(self.training_files),
            **self.description(),
            "features": self.features.state_dict_json(),
        }
        state = self.state_dict().items()
        tensors = {name: tensor.cpu().contiguous() for name, tensor in state if not name.startswith(LEARNING)}
        arrays = {
            FEATURE_PREFIX + name: torch.from_numpy(array) for name, array in self.features.state_arrays().items()
        }
        return config, {**tensors, **arrays}

    @classmethod
    def from_state(cls, config: dict[str, Any], tensors: dict[str, Tensor], build: Builder) -> Self:
        """Return the tagger of this class, or of one that `load` takes, that `to_state` told of, ready to tag.

        `build` makes its parts. Raises InputError for anything else.
        """
        return cast(Self, _built(_kind(config, cls, build), config, tensors, build))

    def _save_pretrained(self, save_directory: Path) -> None:
        self._write(save_directory, "float32")

    def _write(self, folder: Path, table: TableType) -> None:
        config, tensors = self.to_state()
        write_folder(folder, config, tensors, table)
        text = model_card(config, tensors, self.features.columns) if self.card is None else self.card
        (folder / CARD).write_text(text, encoding="utf-8")

    def save_pretrained(
        self, save_directory: str | Path, *, repo_id: str | None = None, push_to_hub: bool = False, **options: Any
    ) -> str | None:
        """Save as `save` does and, if asked for, push to the hub: REPO_ID, by default the folder's name.

        options: those of `push_to_hub`, which says what is returned.
        """
        self.save(save_directory)
        return self.push_to_hub(repo_id or Path(save_directory).name, **options) if push_to_hub else None

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Put the tagger, with its present weights and its card, on the hub; return the address of the commit.

        Args:
            repo_id: of the repository, which is made if there is none, such as "me/tagger".
            options: private, token, licence, language, branch, commit_message and create_pr, as of `push_folder`.

        Raises:
            InputError: as `push_folder`.
        """
        with TemporaryDirectory() as folder:
            self.save(Path(folder) / "model")
            return push_folder(Path(folder) / "model", repo_id, **options)

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu", trusted: Iterable[str] = ()) -> Self:
        """Return a saved tagger of this class, or of a class derived from it or named in `loads`, ready to tag.

        This runs no code but that of this library and of `trusted`, names of modules with parts of one's own, and reads
        nothing but the two files of the folder, and the text of its card, which is kept as it is.

        Raises InputError when the folder holds no model, one of another format or class, one that is damaged, and one
        that names classes of other modules.
        """
        path = Path(folder)
        with model_errors(path):
            config, tensors = read_folder(path, device)
            tagger = cls.from_state(config, tensors, Builder(trusted)).to(device)
        tagger.card = read_card(path)
        return tagger

    @classmethod
    def from_pretrained(  # type: ignore[override]  # that of the hub reads further files
        cls,
        model: str | Path,
        *,
        revision: str | None = None,
        trusted: Iterable[str] = (),
        **options: Any,
    ) -> Self:
        """Return a saved tagger as `load` does, from a folder or from the hub.

        Args:
            model: a folder, or an id of the hub, of which the two files and the card are fetched.
            revision: branch, tag or commit of the hub.
            trusted: names of modules with parts of one's own, as in `load`.
            options: those of `huggingface_hub.snapshot_download`, such as token, cache_dir and local_files_only.

        Raises:
            InputError: as in `load`, and for a model that the hub does not give.
        """
        if Path(model).is_dir():
            return cls.load(model, trusted=trusted)
        try:
            folder = snapshot_download(str(model), revision=revision, allow_patterns=[CONFIG, WEIGHTS, CARD], **options)
        except Exception as error:  # of the hub's library, or of whichever one it uses for the network
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"hub {model}: this model cannot be had ({reason})") from error
        return cls.load(folder, trusted=trusted)


def _kind(config: dict[str, Any], wanted: type[SavedTagger], build: Builder) -> type[SavedTagger]:
    """The class that was saved, `wanted` where none is named. Raises InputError when it is no `wanted`."""
    if "class" not in config:
        return wanted
    kind = build.find(config["class"], SavedTagger, "class")
    if not issubclass(kind, (wanted, *wanted.loads)):
        raise InputError(f"this is a {kind.__name__}, not a {wanted.__name__}; load it with {kind.__name__}.load")
    return cast(type[SavedTagger], kind)


def _built(kind: type[SavedTagger], config: dict[str, Any], tensors: dict[str, Tensor], build: Builder) -> SavedTagger:
    check_entries(config)
    arrays = {name: tensor.cpu().numpy() for name, tensor in arrays_of_features(tensors).items()}
    weights = {name: t for name, t in tensors.items() if not name.startswith(FEATURE_PREFIX)}
    features = FeatureExtractor.from_state(config["features"], arrays, build)

    def blank() -> SavedTagger:
        tagger = kind.from_description(config, features, build)
        tagger.allocate(LabelSet(tuple(config["labels"]), config["scheme"]))
        return tagger

    with torch.device("meta"), _at_most(len(weights)):  # sizes without memory: a wrong one costs nothing
        _check_weights(blank(), weights)
    tagger = blank()
    tagger.unit, tagger.training_files = config["unit"], check_training_files(config.get(TRAINING_FILES, {}))
    own = {name: t for name, t in tagger.state_dict().items() if name.startswith(LEARNING)}
    tagger.load_state_dict({**own, **weights})
    return tagger.eval()


@contextmanager
def _at_most(tensors: int) -> Iterator[None]:
    """Within the block InputError for modules that make many more weights than there are tensors.

    Criteria have some that are not saved. A depth that is a slip, or meant to hurt, would take hours to build.
    """
    left = iter(range(2 * tensors + SPARE))

    def count(module: nn.Module, name: str, parameter: Tensor | None) -> None:
        if next(left, None) is None:
            raise InputError(f"its parts have many more weights than the {tensors} tensors of {WEIGHTS}")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _check_weights(tagger: SavedTagger, weights: dict[str, Tensor]) -> None:
    """Raise InputError unless weights have the names, sizes and types of the tagger's state."""
    state = {name: t for name, t in tagger.state_dict().items() if not name.startswith(LEARNING)}
    if missing := state.keys() - weights.keys():
        raise InputError(f"there are no weights {min(missing)}")
    if unknown := weights.keys() - state.keys():
        raise InputError(f"there are weights {min(unknown)}, which this model has not")
    open_ended = tuple(f"{prefix}." for prefix, module in tagger.named_modules() if _takes_sizes(module))
    for name, own in state.items():
        given = weights[name]
        if own.dtype != given.dtype or (own.shape != given.shape and not name.startswith(open_ended)):
            raise InputError(
                f"weights {name} are {given.dtype} {tuple(given.shape)}, but {own.dtype} {tuple(own.shape)} are due"
            )


def _takes_sizes(module: nn.Module) -> bool:
    """Whether the sizes of a module are those of the state that it loads."""
    return type(module)._load_from_state_dict is not nn.Module._load_from_state_dict
