"""Learners of several processes, whose weights are mixed after each epoch."""

from typing import Literal

import torch

from structperc.batching.processes import share, summed
from structperc.optim import AveragedOptimizer
from structperc.optim.averaged import lazy_average

Mixing = Literal["uniform", "updates"]


@torch.no_grad()
def mix(optimizer: AveragedOptimizer, updates: int, how: Mixing) -> None:
    """Give every process the mean of the weights of all, and the mean of their averages.

    Iterative parameter mixing (McDonald, Hall & Mann 2010, "Distributed training strategies for the structured
    perceptron", Fig. 3): each process learns its own share of the data for an epoch, then begins the next one with the
    mixture, in which process i counts mu_i: 1 / processes ("uniform"), or its share of the `updates` of the epoch. On a
    separable set of margin gamma with features of length R, the perceptron's updates k_i of all epochs, weighted by
    mu_i, sum up to at most R^2 / gamma^2 (their Theorem 3), as those of one process do. One process is left as it is.

    A weight's average over the steps is w - sums / steps; mixed are these averages, and all processes go on with the
    number of steps of the process that has made most.
    """
    processes, group = share().processes, optimizer.param_groups[0]
    if processes == 1 or not group["steps"]:
        return
    total = float(summed(torch.tensor(float(updates), dtype=torch.float64)))
    own = updates / total if how == "updates" and total else 1 / processes
    steps = torch.zeros(processes, dtype=torch.int64)
    steps[share().process] = group["steps"]
    most = int(summed(steps).max())
    for p in group["params"]:
        average = summed(lazy_average(p, optimizer.sums(p), group["steps"]) * own) if group["average"] else None
        p.copy_(summed(p * own))
        if average is not None:
            torch.sub(p.double(), average, out=optimizer.sums(p)).mul_(most)
    group["steps"] = most
