"""Saved models: a folder with model.json and model.safetensors, self-contained, no pickle."""

import importlib
import inspect
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import torch
from huggingface_hub import PyTorchModelHubMixin, snapshot_download
from safetensors.torch import load_file, save_file
from torch import nn

from structperc.data.labels import LabelSet
from structperc.encoders import TextModule
from structperc.errors import InputError
from structperc.features import FeatureExtractor

if TYPE_CHECKING:
    from structperc.training.sequence_tagger import SequenceTagger

FORMAT = 2
CONFIG, WEIGHTS = "model.json", "model.safetensors"
LEARNED = "learned"  # of a described text module
LEARNING = "criterion."  # what criteria keep in mind is of checkpoints, not of saved models


class Store(PyTorchModelHubMixin):
    """save, load, push_to_hub and from_pretrained for the tagger."""

    def save(self: "SequenceTagger", folder: str | Path) -> None:  # type: ignore[misc]
        """Write the tagger with its present weights; the folder appears whole or not at all."""
        target = Path(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
            fresh = Path(scratch) / "new"
            fresh.mkdir()
            self._save_pretrained(fresh)
            old = Path(scratch) / "old"
            if target.exists():
                os.replace(target, old)
            try:
                os.replace(fresh, target)
            except OSError:
                if old.exists():
                    old.rename(target)
                raise

    def _save_pretrained(self: "SequenceTagger", save_directory: Path) -> None:  # type: ignore[misc]
        config = {
            "format": FORMAT,
            "class": path_of(type(self)),
            "labels": list(self.labels.names),
            "scheme": self.labels.scheme,
            "unit": self.unit,
            **self.description(),
            "features": self.features.state_dict_json(),
        }
        state = self.state_dict().items()
        tensors = {name: tensor.cpu().contiguous() for name, tensor in state if not name.startswith(LEARNING)}
        arrays = {f"features.{name}": torch.from_numpy(a) for name, a in self.features.state_arrays().items()}
        (save_directory / CONFIG).write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
        save_file(apart({**tensors, **arrays}), save_directory / WEIGHTS)

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> Self:
        """A saved tagger of this class or one derived from it, ready to tag.

        InputError when the folder holds no model, one of another format or one of another class.
        """
        path = Path(folder)
        for name in (CONFIG, WEIGHTS):
            if not (path / name).is_file():
                raise InputError(f"{path}: no saved model here ({name} is missing)")
        try:
            config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
            check_format(config)
            kind = class_of(config, cls)  # type: ignore[arg-type]
            return cast(Self, _build(kind, config, load_file(path / WEIGHTS, device=device)).to(device))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except Exception as error:  # whatever a damaged file leads to
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{path}: not a readable model ({reason}); save it again") from None

    @classmethod
    def _from_pretrained(cls, *, model_id: str, revision: str | None = None, **options: Any) -> Self:
        if Path(model_id).is_dir():
            return cls.load(model_id)
        passed_on = ("cache_dir", "force_download", "token", "local_files_only")
        known = {key: options[key] for key in passed_on if key in options}
        return cls.load(snapshot_download(model_id, revision=revision, **known))


def apart(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors that no two names share, as the file wants them: parts may share a part, such as a lexicon."""
    found: dict[int, torch.Tensor] = {}
    return {n: t if found.setdefault(t.data_ptr(), t) is t else t.clone() for n, t in tensors.items()}


def check_format(config: Any) -> None:
    """InputError unless this version can read the configuration."""
    if not isinstance(config, dict) or "format" not in config:
        raise InputError(f"{CONFIG} is no configuration of a model (it has no 'format')")
    if config["format"] != FORMAT:
        raise InputError(f"{CONFIG} has format {config['format']}, this version reads {FORMAT}")


def class_of(config: dict[str, Any], wanted: "type[SequenceTagger]") -> "type[SequenceTagger]":
    """The class that was saved, `wanted` where none is named. InputError when it is no `wanted`."""
    kind = named(config["class"]) if "class" in config else wanted
    if not issubclass(kind, wanted):
        raise InputError(f"this is a {kind.__name__}, not a {wanted.__name__}; load it with {kind.__name__}.load")
    return kind


def path_of(cls: type) -> str:
    """Dotted path of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def named(path: str) -> Any:
    """What a dotted path names. InputError when it cannot be imported."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise InputError(f"the saved model uses {path}, which cannot be imported") from None


def describe(part: Any) -> dict[str, Any]:
    """{class_path, init_args} of an object that keeps its options under their own names; modules within it too.

    Text modules add what they have learned.
    """
    parameters = inspect.signature(type(part)).parameters.values()
    options = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    values = {option: getattr(part, option) for option in options}
    described = {"class_path": path_of(type(part)), "init_args": {o: _plain(value) for o, value in values.items()}}
    learned = part.learned() if isinstance(part, TextModule) else None
    return described if learned is None else {**described, LEARNED: learned}


def _plain(value: Any) -> Any:
    if isinstance(value, nn.ModuleList):
        return [describe(one) for one in value]
    return describe(value) if isinstance(value, nn.Module) else value


def rebuild(described: dict[str, Any]) -> Any:
    """The object that `describe` described."""
    part = named(described["class_path"])(**{o: _rebuilt(value) for o, value in described["init_args"].items()})
    if LEARNED in described:
        part.relearn(described[LEARNED])
    return part


def _rebuilt(value: Any) -> Any:
    if isinstance(value, list):
        return [_rebuilt(one) for one in value]
    return rebuild(value) if isinstance(value, dict) and "class_path" in value else value


def _build(cls: "type[SequenceTagger]", config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> "SequenceTagger":
    prefix = "features."
    arrays = {name[len(prefix) :]: t.cpu().numpy() for name, t in tensors.items() if name.startswith(prefix)}
    tagger = cls.from_description(config, FeatureExtractor.from_state(config["features"], arrays))
    tagger.allocate(LabelSet(tuple(config["labels"]), config["scheme"]))
    tagger.unit = config["unit"]
    fresh = {name: t for name, t in tagger.state_dict().items() if name.startswith(LEARNING)}
    tagger.load_state_dict({**fresh, **{name: t for name, t in tensors.items() if not name.startswith(prefix)}})
    return tagger.eval()
