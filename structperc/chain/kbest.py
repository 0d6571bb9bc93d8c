"""The k best label sequences, exactly, also with biases of labels."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from structperc.chain.decoders import Decoder, add_label_bias, bias_of_labels
from structperc.chain.lattices import operands
from structperc.chain.segment_scores import kbest_labels
from structperc.chain.viterbi import viterbi
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.ops.operators import kbest as best_paths
from structperc.structures import Candidates, Lattice

BYTES_PER_TOKEN = 40  # of each candidate (measured: 21 to 38)
BYTES_PER_LABEL = 28  # of each candidate, at one token (measured)
UNCHECKED = 2**28  # bytes
_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def check_memory(k: int, shape: torch.Size, device: torch.device) -> None:
    """Check that lists of k candidates fit into memory.

    `k`: number of candidates. `shape`: shape (B, T, L) of the unary scores. `device`: device of the candidates. Raises
    InputError: the candidates need more memory than is free.
    """
    B, T, L = shape
    needed = k * B * (T * BYTES_PER_TOKEN + L * BYTES_PER_LABEL)
    if needed < UNCHECKED:
        return
    free = free_memory(device)
    if free is not None and needed > free:
        lists = f"{B} sequences of {T} tokens" if B > 1 else f"a sequence of {T} tokens"
        sizes = f"{needed / 2**30:.1f} GiB of memory, but {free / 2**30:.1f} are free"
        raise InputError(f"k = {k}: the candidates of {lists} need {sizes}; set k lower")


def check_candidates(k: int, shape: torch.Size, device: torch.device) -> None:
    """Check that k is a number of candidates, and, but for programs of unknown sizes, that they fit into memory.

    `k`: number of candidates. `shape`: shape (B, T, L) of the unary scores. `device`: device of the candidates. Raises
    InputError: k is no integer >= 1, or the candidates need more memory than is free.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(f"k must be an integer >= 1, got {k!r}")
    if not (torch.compiler.is_compiling() or torch.compiler.is_exporting()):
        check_memory(k, shape, device)


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device, within the limits of a cgroup; None if unknown."""
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

    Ties are in lexicographic order: the first candidate is the result of `viterbi`, and the first k - 1 candidates are
    those of k - 1. An empty sequence has one candidate, of score 0. Memory is O(T k). There are no gradients: use
    `path_score`. The algorithm is exact (Soong and Huang 1991, Huang and Chiang 2005). `k`: number of candidates, at
    least 1. Returns labels (B, k, T), scores (B, k), and `valid` (B, k), False where a sequence has fewer than k label
    sequences.

    Raises:
        InputError: k < 1, too little memory for the candidates, or wrong shapes.
        InvalidScoreError: on a CPU, a score of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.chain import kbest
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> candidates = kbest(lattice, k=3)
        >>> candidates.labels.tolist(), candidates.scores.tolist()
        ([[[1, 0], [0, 0], [1, 1]]], [[3.0, 2.0, 1.0]])
    """
    if lattice.segments is not None:
        check_candidates(k, lattice.unary.shape, lattice.unary.device)
        return kbest_labels(lattice, k)
    unary, edge, lengths = operands(lattice)
    check_candidates(k, unary.shape, unary.device)
    return Candidates(*best_paths(unary, edge, lengths, k))


class KBest(Decoder):
    """Module that searches for the k best label sequences; see the function `kbest`.

    Args:
        k: number of candidates, at least 1.

    Raises:
        InputError: k < 1.
    """

    def __init__(self, k: int = 20):
        super().__init__()
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        self.k = k

    def compiled(self) -> Mapping[str, float]:
        """Return no numbers: the best path is that of the lattice."""
        return {}

    def scores(self, lattice: Lattice) -> Lattice:
        """Return the scores of the search; subclasses add to those of the lattice."""
        return lattice

    def forward(self, lattice: Lattice) -> Candidates:
        """Return the k best label sequences, best first."""
        return kbest(self.scores(lattice), self.k)

    def best(self, lattice: Lattice) -> Tensor:
        """Return the best labels (B, T) int64, those of `viterbi`."""
        return viterbi(self.scores(lattice))[1]


class LabelBias(KBest):
    """Decoder that adds a number to the scores of labels, for more recall or precision; see `add_label_bias`.

    Args:
        bias: numbers by label name; other labels have none. A negative one of "O" gives more recall.
        k: number of candidates, at least 1; with non-local features as many as for the decoder of the tagger.

    Raises:
        InputError: k < 1, or (from `allocate`) an unknown label.
    """

    added: Tensor  # (L,)

    def __init__(self, bias: dict[str, float], k: int = 1) -> None:
        super().__init__(k)
        self.bias = bias

    def allocate(self, labels: LabelSet) -> None:
        """Look up the labels. Raises InputError for an unknown one."""
        self.register_buffer("added", bias_of_labels(self.bias, labels), persistent=False)

    def compiled(self) -> Mapping[str, float]:
        """Return the biases."""
        return self.bias

    def scores(self, lattice: Lattice) -> Lattice:
        """Return the lattice with the biases in its scores."""
        return add_label_bias(lattice, self.added)
