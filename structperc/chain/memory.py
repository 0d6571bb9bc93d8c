"""The check whether lists of candidates fit into memory, before they are made."""

from pathlib import Path

import torch

from structperc.errors import InputError

PLACE = 40  # bytes for each candidate and token: its label, in several orders (measured: 21 to 38)
CHOICE = 28  # bytes for each candidate and label, while a token is looked at (measured)
SMALL = 2**28  # bytes that are had without asking
_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def check_memory(k: int, shape: torch.Size, device: torch.device) -> None:
    """Raise InputError if lists of k candidates need more memory than there is.

    `shape` (B, T, L) is that of unary scores.
    """
    B, T, L = shape
    needed = k * B * (T * PLACE + L * CHOICE)
    if needed < SMALL:
        return
    free = free_memory(device)
    if free is not None and needed > free:
        lists = f"{B} sequences of {T} tokens" if B > 1 else f"a sequence of {T} tokens"
        sizes = f"{needed / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} are free"
        raise InputError(f"k = {k}: so many candidates of {lists} take {sizes}; set k lower")


def free_memory(device: torch.device) -> int | None:
    """Return the bytes that are free on a device, or None where the number is not known."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    if device.type != "cpu" or not _SYSTEM.is_file():
        return None
    lines = _SYSTEM.read_text(encoding="utf-8").splitlines()
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    limit, used = _GROUP / "memory.max", _GROUP / "memory.current"
    if limit.is_file() and used.is_file() and (most := limit.read_text().strip()).isdigit():
        free.append(int(most) - int(used.read_text()))
    return min(free, default=None)
