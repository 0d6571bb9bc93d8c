"""The k best label sequences, exactly."""

from pathlib import Path

import torch
from torch import nn

from structperc.chain.lattices import validate_lattice
from structperc.errors import InputError
from structperc.ops import kbest as best_paths
from structperc.structures import Candidates, Lattice

BYTES_PER_TOKEN = 40  # of each candidate (measured: 21 to 38)
BYTES_PER_LABEL = 28  # of each candidate, at one token (measured)
UNCHECKED = 2**28  # bytes
_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def check_memory(k: int, shape: torch.Size, device: torch.device) -> None:
    """Raise InputError if lists of k candidates for unary scores of this shape (B, T, L) do not fit into memory."""
    B, T, L = shape
    needed = k * B * (T * BYTES_PER_TOKEN + L * BYTES_PER_LABEL)
    if needed < UNCHECKED:
        return
    free = free_memory(device)
    if free is not None and needed > free:
        lists = f"{B} sequences of {T} tokens" if B > 1 else f"a sequence of {T} tokens"
        sizes = f"{needed / 2**30:.1f} GiB of memory, but {free / 2**30:.1f} are free"
        raise InputError(f"k = {k}: the candidates of {lists} need {sizes}; set k lower")


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device, those that a cgroup allows included; None if unknown."""
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


@torch.no_grad()
def kbest(lattice: Lattice, k: int) -> Candidates:
    """Return the k best label sequences of each sequence, best first, without duplicates.

    Ties are in lexicographic order: the first is that of `viterbi`, the first k - 1 are those of k - 1. An empty
    sequence has one candidate of score 0. Memory is O(T k). There are no gradients: use `path_score`.

    Raises:
        InputError: k < 1, the lists do not fit into memory, or shapes are wrong.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> kbest(Lattice(scores, torch.zeros(1, 1, 2, 2), torch.tensor([2])), 3).labels
        tensor([[[1, 0],
                 [0, 0],
                 [1, 1]]])
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(f"k must be an integer >= 1, got {k!r}")
    lattice = validate_lattice(lattice)
    if not (torch.compiler.is_compiling() or torch.compiler.is_exporting()):  # sizes may be unknown
        check_memory(k, lattice.unary.shape, lattice.unary.device)
    return Candidates(*best_paths(*lattice, k))


class KBest(nn.Module):
    """The function `kbest` as a module with the option k."""

    def __init__(self, k: int = 20):
        super().__init__()
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        self.k = k

    def forward(self, lattice: Lattice) -> Candidates:
        """Return the k best label sequences, best first."""
        return kbest(lattice, self.k)
