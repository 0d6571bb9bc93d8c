"""One search for the n best labellings by local score, and the best by total score among each shorter list of them."""

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
    """Adds up the seconds of several activities; it waits for a GPU to finish before it reads the time."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds, self.last = device, [0.0, 0.0], 0.0

    def start(self) -> None:
        """Begin to count time for the activity that is stopped next."""
        self._wait()
        self.last = time.perf_counter()

    def stop(self, activity: int) -> None:
        """Count the time since the last start or stop for this activity."""
        self._wait()
        now = time.perf_counter()
        self.seconds[activity] += now - self.last
        self.last = now

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class Searched(NamedTuple):
    """The candidates of a mini-batch, as many as the longest list has, and the choice from each list."""

    candidates: Candidates  # best by local score first
    choices: list[Tensor]  # for each length n' (B,): which of the first n' is best by total score


@torch.no_grad()
def searched(tagger: LatticeTagger, batch: Batch, sizes: Sequence[int], watch: Watch) -> Searched:
    """Return the candidates and choices of lists of these lengths, in ascending order, from one search."""
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
    """Return the candidates of the places from `start` (counted from 0) up to, not including, `stop`."""
    return Candidates(*(x[:, start:stop] for x in candidates))
