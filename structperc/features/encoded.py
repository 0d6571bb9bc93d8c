"""Feature ids of a whole corpus, from which mini-batches are cut."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structperc.ragged import Ragged


class EncodedFeatures(NamedTuple):
    """Features of S sequences, a list for each token; `edges` is the same object as `nodes` where they are the same."""

    nodes: Ragged
    edges: Ragged | None  # None when no template asks for edges
    starts: np.ndarray  # (S + 1,) int64, sequence s is the tokens starts[s]:starts[s + 1]

    def cut(self, rows: Sequence[int] | np.ndarray) -> tuple[Ragged, Ragged | None]:
        """Return node and edge features of some sequences in the order of `rows`, as `Batch` holds them."""
        order = np.asarray(rows, dtype=np.int64)
        span = self.starts[order], self.starts[order + 1]
        nodes = self.nodes.take(*span)
        if self.edges is None:
            return nodes, None
        return nodes, nodes if self.edges is self.nodes else self.edges.take(*span)
