"""Saved models: a folder with model.json and model.safetensors, self-contained, no pickle."""

import importlib
import inspect
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from huggingface_hub import PyTorchModelHubMixin, snapshot_download
from safetensors.torch import load_file, save_file
from torch import nn

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.features import FeatureExtractor

if TYPE_CHECKING:
    from structperc.training.tagger import Tagger

FORMAT = 1
CONFIG, WEIGHTS = "model.json", "model.safetensors"
PARTS = ("scorer", "criterion", "search")


class Store(PyTorchModelHubMixin):
    """save, load, push_to_hub and from_pretrained for the tagger."""

    def save(self: "Tagger", folder: str | Path) -> None:  # type: ignore[misc]
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

    def _save_pretrained(self: "Tagger", save_directory: Path) -> None:  # type: ignore[misc]
        config = {
            "format": FORMAT,
            "labels": list(self.labels.names),
            "scheme": self.labels.scheme,
            "unit": self.unit,
            **{part: describe(getattr(self, part)) for part in PARTS},
            "features": self.features.state_dict_json(),
        }
        tensors = {f"scorer.{name}": p.detach().cpu().contiguous() for name, p in self.scorer.named_parameters()}
        arrays = {f"features.{name}": torch.from_numpy(a) for name, a in self.features.state_arrays().items()}
        (save_directory / CONFIG).write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
        save_file({**tensors, **arrays}, save_directory / WEIGHTS)

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> "Tagger":
        """A saved tagger, ready to tag. InputError when the folder holds no model or one of another format."""
        path = Path(folder)
        for name in (CONFIG, WEIGHTS):
            if not (path / name).is_file():
                raise InputError(f"{path}: no saved model here ({name} is missing)")
        try:
            config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
            check_format(config)
            return _build(cls, config, load_file(path / WEIGHTS, device=device)).to(device)  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except Exception as error:  # whatever a damaged file leads to
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{path}: not a readable model ({reason}); save it again") from None

    @classmethod
    def _from_pretrained(cls, *, model_id: str, revision: str | None = None, **options: Any) -> "Tagger":
        if Path(model_id).is_dir():
            return cls.load(model_id)
        passed_on = ("cache_dir", "force_download", "token", "local_files_only")
        known = {key: options[key] for key in passed_on if key in options}
        return cls.load(snapshot_download(model_id, revision=revision, **known))


def check_format(config: Any) -> None:
    """InputError unless this version can read the configuration."""
    if not isinstance(config, dict) or "format" not in config:
        raise InputError(f"{CONFIG} is no configuration of a model (it has no 'format')")
    if config["format"] != FORMAT:
        raise InputError(f"{CONFIG} has format {config['format']}, this version reads {FORMAT}")


def describe(part: nn.Module) -> dict[str, Any]:
    """{class_path, init_args} of a module that keeps its options under their own names."""
    cls = type(part)
    parameters = inspect.signature(cls).parameters.values()
    options = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {
        "class_path": f"{cls.__module__}.{cls.__qualname__}",
        "init_args": {o: getattr(part, o) for o in options},
    }


def rebuild(described: dict[str, Any]) -> nn.Module:
    """The module that `describe` described."""
    module, _, name = described["class_path"].rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)(**described["init_args"])
    except (ImportError, AttributeError, ValueError):
        raise InputError(f"the saved model uses {described['class_path']}, which cannot be imported") from None


def _build(cls: "type[Tagger]", config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> "Tagger":
    prefix = "features."
    arrays = {name[len(prefix) :]: t.cpu().numpy() for name, t in tensors.items() if name.startswith(prefix)}
    features = FeatureExtractor.from_state(config["features"], arrays)
    parts: dict[str, Any] = {part: rebuild(config[part]) for part in PARTS}
    tagger = cls(features=features, **parts)
    tagger.allocate(LabelSet(tuple(config["labels"]), config["scheme"]))
    tagger.unit = config["unit"]
    tagger.load_state_dict({name: t for name, t in tensors.items() if not name.startswith(prefix)})
    return tagger.eval()
