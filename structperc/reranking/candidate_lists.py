"""The n best label sequences of every sequence of a corpus under a first model, stored as compact arrays."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from structperc.criteria.base import is_allowed
from structperc.data.output import open_atomic
from structperc.errors import InputError
from structperc.ragged import Ragged, boundaries
from structperc.structures import Candidates, padded_places

Correct = Literal["closest", "gold"]  # the target of a sequence whose gold labels are not in its list

TENSORS = ("labels", "scores", "valid", "gold_scores", "starts")


class ListBatch(NamedTuple):
    """The padded candidate lists of B sequences, and the scores of their gold labels by the first model.

    Args:
        candidates: Candidates with the scores of the first model.
        gold_scores: (B,), scores of the gold labels by the first model.

    Example:
        >>> import torch
        >>> from structperc import Candidates
        >>> labels, valid = torch.tensor([[[0, 1], [0, 0]]]), torch.ones(1, 2).bool()
        >>> candidates = Candidates(labels, torch.tensor([[2.0, 1.5]]), valid)
        >>> batch = ListBatch(candidates, gold_scores=torch.tensor([1.5]))
        >>> lists = CandidateLists.collect([2], 2, 2, [(torch.tensor([0]), batch)])  # one sequence of two tokens
        >>> lists.contains(torch.tensor([0, 0])).tolist()  # the gold labels are the second candidate
        [True]
    """

    candidates: Candidates
    gold_scores: Tensor


@dataclass(frozen=True)
class CandidateLists:
    """The candidate lists of S sequences with N tokens in all, as compact arrays.

    Sequence s has the tokens starts[s]:starts[s + 1] and up to K candidates.

    Args:
        labels: (N, K) uint8 or int32, the label of each token in each candidate; 0 where not valid.
        scores: (S, K), the scores of the first model, -inf where not valid.
        valid: (S, K) bool, False for padding.
        gold_scores: (S,), the scores of the gold labels by the first model.
        starts: (S + 1,) int64, offsets of the sequences.

    Raises:
        InputError: The shapes do not fit together.
    """

    labels: Tensor
    scores: Tensor
    valid: Tensor
    gold_scores: Tensor
    starts: Tensor

    def __post_init__(self) -> None:
        S, K = self.scores.shape
        wanted = {"labels": (int(self.starts[-1]), K), "valid": (S, K), "gold_scores": (S,), "starts": (S + 1,)}
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise InputError(f"candidate lists: {name} has shape {tuple(getattr(self, name).shape)}, not {shape}")

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def k(self) -> int:
        """The number of candidates per sequence, K."""
        return self.scores.shape[1]

    @property
    def lengths(self) -> Tensor:
        """The number of tokens of each sequence, (S,) int64."""
        return self.starts.diff()

    @classmethod
    def collect(
        cls, lengths: Sequence[int], k: int, n_labels: int, parts: Iterable[tuple[Tensor, ListBatch]]
    ) -> "CandidateLists":
        """Return the lists of all sequences from those of mini-batches.

        Args:
            lengths: Number of tokens of each of the S sequences.
            k: Number of candidates per sequence, K.
            n_labels: Size of the label set, L.
            parts: For each mini-batch the rows (B,) of its sequences, and their lists. Sequences without lists have
                only invalid candidates.
        """
        starts = boundaries(torch.tensor(lengths, dtype=torch.int64))
        lists = cls(
            torch.zeros(int(starts[-1]), k, dtype=torch.uint8 if n_labels <= 256 else torch.int32),
            torch.full((len(lengths), k), -torch.inf),
            torch.zeros(len(lengths), k, dtype=torch.bool),
            torch.zeros(len(lengths)),
            starts,
        )
        for rows, (candidates, gold_scores) in parts:
            places, real = padded_places(starts[rows.cpu()], lists.lengths[rows.cpu()])
            lists.labels[places[real]] = candidates.labels.transpose(1, 2).cpu()[real].to(lists.labels.dtype)
            lists.scores[rows], lists.valid[rows] = candidates.scores.float().cpu(), candidates.valid.cpu()
            lists.gold_scores[rows] = gold_scores.float().cpu()
        return lists

    def contains(self, labels: Tensor) -> Tensor:
        """Return a mask (S,) bool of the sequences whose candidates include the gold labels.

        Args:
            labels: gold labels (N,) int64, or masks (N, L) bool of allowed labels.
        """
        if labels.dtype == torch.bool:
            wrong = (~labels.gather(1, self.labels.long())).long()
        else:
            wrong = (self.labels != labels.unsqueeze(1)).long()
        errors = wrong.new_zeros(self.valid.shape).index_add_(0, self._of_tokens.row_ids, wrong)
        return ((errors == 0) & self.valid).any(1)

    def batch(self, rows: Tensor) -> ListBatch:
        """Return the lists of the sequences `rows` (B,), padded to the longest of them."""
        places, real = padded_places(self.starts[rows], self.lengths[rows])
        labels = (self.labels[places].long() * real.unsqueeze(2)).transpose(1, 2)
        return ListBatch(Candidates(labels, self.scores[rows], self.valid[rows]), self.gold_scores[rows])

    def take(self, rows: Tensor) -> "CandidateLists":
        """Return the lists of the sequences `rows` (B,), in that order."""
        taken = self._of_tokens.select(rows)
        return CandidateLists(taken.ids, self.scores[rows], self.valid[rows], self.gold_scores[rows], taken.offsets)

    @classmethod
    def concat(cls, parts: Sequence["CandidateLists"]) -> "CandidateLists":
        """Return the lists of all parts, one after the other; all have the same K."""
        joined = Ragged.join([part._of_tokens for part in parts])
        scores, valid, gold_scores = (
            torch.cat([getattr(part, name) for part in parts]) for name in ("scores", "valid", "gold_scores")
        )
        return cls(joined.ids, scores, valid, gold_scores, joined.offsets)

    @property
    def _of_tokens(self) -> Ragged:
        """The tokens of each sequence, with their labels in the K candidates."""
        return Ragged(self.labels, self.starts)

    # -- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | Path, about: dict[str, Any]) -> None:
        """Write a safetensors file with `about` as JSON in its header. An existing file is replaced atomically."""
        tensors = {name: getattr(self, name).contiguous() for name in TENSORS}
        header = {"about": json.dumps(about), "digest": _digest(tensors)}
        with open_atomic(path) as file:
            file.write(save(tensors, header))

    @classmethod
    def load(cls, path: str | Path) -> tuple["CandidateLists", dict[str, Any]]:
        """Return the lists in a file, and its `about`.

        Raises:
            InputError: The file is missing or damaged.
        """
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
        try:
            with safe_open(path, "pt") as file:
                header, tensors = file.metadata(), {name: file.get_tensor(name) for name in TENSORS}
            if header["digest"] != _digest(tensors):
                raise InputError("its checksum is wrong")
            return cls(**tensors), json.loads(header["about"])
        except Exception as error:  # damaged files raise errors of any type
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"{path}: not readable candidate lists ({reason}); delete it") from None


def closest_allowed(candidates: Candidates, allowed: Tensor) -> Tensor:
    """Return the best candidate (B,) int64 of those with the fewest labels that are not allowed.

    Args:
        candidates: lists of the first model, best first.
        allowed: (B, T, L) bool, True in the padding.
    """
    wrong = (~is_allowed(candidates.labels, allowed)).sum(2)
    return wrong.masked_fill(~candidates.valid, allowed.shape[1] + 1).argmin(1)


def _digest(tensors: dict[str, Tensor]) -> str:
    """Return a checksum of names, types, shapes and contents."""
    total = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.numpy().tobytes())
    return total.hexdigest()
