"""Parts of a batch, so that the candidates of many long sequences fit into memory."""

from collections.abc import Iterator
from itertools import pairwise

from structperc.ragged import boundaries
from structperc.structures import Batch, Words

PLACES = 2**22  # sequences x candidates x tokens at a time: 32 MiB for their labels, some ten times that in all


def parts(batch: Batch, k: int) -> Iterator[Batch]:
    """Yield the sequences of a batch in their order, as many at a time as k candidates of each allow, at least one."""
    B, T = batch.sentences.shape
    size = max(1, PLACES // max(1, k * T))
    if size >= B:
        yield batch
        return
    ends = boundaries(batch.lengths).tolist()  # in tokens
    for start in range(0, B, size):
        stop = min(start + size, B)
        yield _cut(batch, slice(start, stop), (ends[start], ends[stop]))


def one_by_one(batch: Batch) -> Iterator[Batch]:
    """Yield the sequences of a batch in their order, each as a batch of its own."""
    ends = boundaries(batch.lengths).tolist()
    for row, tokens in enumerate(pairwise(ends)):
        yield _cut(batch, slice(row, row + 1), tokens)


def even_parts(batch: Batch, n: int) -> Iterator[Batch]:
    """Yield the sequences of a batch in their order in n parts that differ by one at most, n <= B."""
    B, ends = len(batch.lengths), boundaries(batch.lengths).tolist()
    for start, stop in pairwise(i * B // n for i in range(n + 1)):
        yield batch if n == 1 else _cut(batch, slice(start, stop), (ends[start], ends[stop]))


def _cut(batch: Batch, rows: slice, tokens: tuple[int, int]) -> Batch:
    """Some rows of a batch, whose tokens are those from the first to the second of `tokens`."""
    places = rows, slice(0, int(batch.lengths[rows].max()))
    return Batch(
        batch.nodes.slice(*tokens),
        None if batch.edges is None else batch.edges.slice(*tokens),
        batch.lengths[rows],
        None if batch.gold is None else batch.gold[places],
        batch.sentences[places],
        batch.first[places],
        batch.last[places],
        batch.rows[rows],
        Words(*(numbers[places] for numbers in batch.words)),
        tuple(one.slice(*tokens) for one in batch.inputs),
    )
