"""python -m benchmarks.taggers.first N FILE > PART: the first N sentences of a column file, with document marks."""

import sys
from itertools import islice
from pathlib import Path

from benchmarks.taggers.system_run import DOCUMENT


def first(lines: list[str], n: int) -> list[str]:
    """Return the lines up to the end of the n-th sentence.

    >>> first(["-DOCSTART- O", "", "a O", "", "b O", ""], 1)
    ['-DOCSTART- O', '', 'a O', '']
    """
    blocks = "\n".join(lines).split("\n\n")
    sentences = (i for i, block in enumerate(blocks, 1) if block.strip() and not block.startswith(DOCUMENT))
    end = next(islice(sentences, n - 1, None), len(blocks))
    return [*"\n\n".join(blocks[:end]).split("\n"), ""]


if __name__ == "__main__":
    print("\n".join(first(Path(sys.argv[2]).read_text(encoding="utf-8").splitlines(), int(sys.argv[1]))))
