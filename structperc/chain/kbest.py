"""The k best labellings of each sequence, exactly.

The check whether lists of candidates fit into memory, before they are made.
"""

from pathlib import Path

import torch
from torch import nn

from structperc.chain.lattices import validate_lattice
from structperc.errors import InputError
from structperc.ops import kbest as best_labellings
from structperc.structures import Candidates, Lattice

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


@torch.no_grad()
def kbest(lattice: Lattice, k: int) -> Candidates:
    """Return the k best labellings of each sequence, best first, none twice; without gradients, which `path_score` has.

    Equal ones stand in lexicographic order, so that the first is that of `viterbi` and the first k - 1 are those of
    `kbest(lattice, k - 1)`. The scores are sums over the lattice as given. An empty sequence has one candidate, the
    empty labelling with score 0. Memory O(T k). Raises InputError for k < 1, for lists that do not fit into memory, and
    for tensors whose shapes do not fit.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(f"k must be a whole number >= 1, got {k!r}")
    lattice = validate_lattice(lattice)
    if not (torch.compiler.is_compiling() or torch.compiler.is_exporting()):  # where sizes may be unknown
        check_memory(k, lattice.unary.shape, lattice.unary.device)
    return Candidates(*best_labellings(*lattice, k))


class KBest(nn.Module):
    """The k best labellings of a lattice: `kbest`, as a module that holds k."""

    def __init__(self, k: int = 20):
        super().__init__()
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        self.k = k

    def forward(self, lattice: Lattice) -> Candidates:
        """Return the k best labellings, best first."""
        return kbest(lattice, self.k)
