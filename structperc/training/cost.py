"""The costs of a run: seconds of training, weights, memory, and tokens per second once it is trained."""

import sys
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import nn

from structperc.data.json_data import check_fields

STATUS = Path("/proc/self/status")
MIB = 2**20


class Stopwatch(pl.Callback):
    """Seconds since it was made; a resumed run adds those that had passed when its checkpoint was written."""

    def __init__(self) -> None:
        self.started, self.before = time.perf_counter(), 0.0

    @property
    def seconds(self) -> float:
        """The seconds of all parts of the run until now."""
        return self.before + time.perf_counter() - self.started

    def state_dict(self) -> dict[str, Any]:
        """Return the seconds until now, which are kept in checkpoints."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the seconds kept in a checkpoint. Raises InputError for one that holds none."""
        check_fields(state_dict, {"seconds": float}, "callbacks.Stopwatch")
        self.before = state_dict["seconds"]


class Clock:
    """Adds up the seconds of stretches of work on a device: `with clock: ...`, as often as there are any."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds = device, 0.0

    def __enter__(self) -> None:
        self._finish()
        self.started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._finish()
        self.seconds += time.perf_counter() - self.started

    def _finish(self) -> None:
        """Wait for what a GPU still has to do."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def by_part(seconds: dict[str, float]) -> str:
    """Return " (folds 70.1, first model 16.0, ...)", or an empty text for a single part."""
    return f" ({', '.join(f'{part} {spent:.1f}' for part, spent in seconds.items())})" if len(seconds) > 1 else ""


def parameters(model: nn.Module) -> int:
    """Return the number of weights of a model, fixed ones included, such as those of a re-ranker's first model."""
    return sum(p.numel() for p in model.parameters())


def size_on_disk(folder: Path) -> float:
    """Return the size of the files of a folder, in MiB."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / MIB


def peak_memory(device: torch.device) -> dict[str, float]:
    """Return the most memory that this process has had, in MiB: `peak_memory_mb` and `peak_gpu_memory_mb`.

    The latter is that of tensors on a GPU. What the system does not say is left out.
    """
    own = peak_resident()
    found = {} if own is None else {"peak_memory_mb": own / MIB}
    if device.type == "cuda":
        found["peak_gpu_memory_mb"] = torch.cuda.max_memory_allocated(device) / MIB
    return found


def peak_resident() -> int | None:
    """Return the most memory that this process has had, in bytes, or None on Windows.

    Linux keeps ru_maxrss over exec: that of a child process is at least what its parent had. VmHWM begins anew.
    """
    if STATUS.is_file():
        for line in STATUS.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # KiB elsewhere
