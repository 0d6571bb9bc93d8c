"""The row format that all readers share: one sentence per row."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datasets import Dataset


def rows(
    columns: Mapping[str, Sequence[str]],
    sentences: Sequence[int],
    documents: Sequence[int],
    lines: Sequence[int] | None = None,
) -> "Dataset":
    """Return a data set of R rows from flat columns of N strings, R + 1 sentence boundaries and R document ids.

    A row holds `document` (int64 id), `sentence` (int64 position), a list of strings for each role and, with
    `lines`, the list of line numbers of its tokens. The rows live in memory: there is no cache to go stale.
    """
    import pyarrow as pa  # these take a second, which readers of files into a corpus do without
    from datasets import Dataset

    boundaries = pa.array(sentences, pa.int32())
    table = {
        "document": pa.array(documents, pa.int64()),
        "sentence": pa.array(np.arange(len(sentences) - 1), pa.int64()),
    }
    for role, values in columns.items():
        table[role] = pa.ListArray.from_arrays(boundaries, pa.array(values, pa.string()))
    if lines is not None:
        table["line"] = pa.ListArray.from_arrays(boundaries, pa.array(lines, pa.int64()))
    return Dataset(pa.table(table))
