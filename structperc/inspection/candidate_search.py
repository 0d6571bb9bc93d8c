"""The n best labellings by local score, and which of them is best by total score when there are fewer."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain import kbest
from structperc.structures import Batch, Candidates
from structperc.taggers.lattice_tagger import LatticeTagger

SEARCH, RESCORE = range(2)  # activities


class Watch:
    """Seconds of several activities; waits for the device, which works on its own."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds, self.last = device, [0.0, 0.0], 0.0

    def start(self) -> None:
        """Time from here on counts for the activity that is stopped next."""
        self._wait()
        self.last = time.perf_counter()

    def stop(self, activity: int) -> None:
        """Counts the time since the last start or stop for the activity."""
        self._wait()
        now = time.perf_counter()
        self.seconds[activity] += now - self.last
        self.last = now

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class Searched(NamedTuple):
    """The candidates of a mini-batch, as many as the longest list has."""

    candidates: Candidates  # best by local score first
    choices: list[Tensor]  # for each length n' (B,): which of the first n' is best by total score


@torch.no_grad()
def searched(tagger: LatticeTagger, batch: Batch, sizes: Sequence[int], watch: Watch) -> Searched:
    """-> Searched for lists of these lengths, in ascending order, from one search."""
    lattice = tagger(batch)
    watch.start()
    candidates = kbest(lattice, sizes[-1])
    watch.stop(SEARCH)
    if tagger.additive:
        totals = tagger.totals(batch, candidates)
        choices = [totals[:, :n].argmax(1) for n in sizes]
    else:  # votes depend on who else is in the list
        choices = [tagger.totals(batch, some(candidates, 0, n)).argmax(1) for n in sizes]
    watch.stop(RESCORE)
    return Searched(candidates, choices)


def some(candidates: Candidates, start: int, stop: int) -> Candidates:
    """The candidates of these places, from 0."""
    return Candidates(*(x[:, start:stop] for x in candidates))
