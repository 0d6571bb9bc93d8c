"""Clusters of word vectors as bit paths, by bisecting k-means."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh

from structperc.errors import InputError
from structperc.progress import bar

ROUNDS = 8  # of 2-means in each split, which mostly converges earlier


def cluster_vectors(
    words: Sequence[str], vectors: np.ndarray, levels: int = 11, balanced: bool = False
) -> dict[str, str]:
    """Compute a bit path for each word by bisecting k-means on vectors of unit length. Steinbach, Karypis & Kumar 2000.

    Each cluster of two or more words is split in two along the first principal direction, then by eight rounds of
    2-means. The path has a bit per split: words that share their first n bits are in one cluster of level n. Time is
    O(levels V D (D + rounds)), and memory that of three copies of the vectors. The same vectors give the same paths.

    Args:
        words: V different words.
        vectors: (V, D) floating-point; only their directions matter. Computed in float32.
        levels: maximum length of a path; there are up to 2^levels clusters.
        balanced: split in halves, so that all clusters of a level have the same number of words, plus or minus one;
            False: 2-means, whose clusters may be of any size.

    Returns:
        The path of each word, in the order of `words`.

    Raises:
        InputError: sizes that do not fit, fewer than two words, repeated words, vectors that are not finite or all
            have the same direction, or levels below 1.

    Example:
        >>> words, vectors = ["cat", "dog", "run", "sit"], np.array([[1, 0.1], [1, 0.2], [-1, 0.1], [-1, 0.2]])
        >>> paths = cluster_vectors(words, vectors, levels=1)
        >>> paths["cat"] == paths["dog"] != paths["run"] == paths["sit"]
        True
    """
    vectors = np.asarray(vectors)
    _check(words, vectors, levels)
    rows = np.array(vectors, np.float32, order="C")  # sums depend on the order in memory
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    order = np.arange(len(rows))
    nodes = [(0, len(rows), "")]  # first and last row of each cluster of a level, and its path
    leaves: list[tuple[int, int, str]] = []
    with bar(total=levels * len(rows), name="clustering", unit_scale=True, unit="words") as progress:
        for _ in range(levels):
            children: list[tuple[int, int, str]] = []
            for start, end, path in nodes:
                size = _bisect(rows[start:end], order[start:end], balanced)
                if 0 < size < end - start:
                    children += [(start, start + size, path + "0"), (start + size, end, path + "1")]
                else:
                    leaves.append((start, end, path))
                progress.update(end - start)
            nodes = children
    if len(leaves) == 1 and not nodes:
        raise InputError("all vectors have the same direction; they have no clusters")
    paths = [""] * len(rows)
    for start, end, path in leaves + nodes:
        for row in order[start:end].tolist():
            paths[row] = path
    return dict(zip(words, paths, strict=True))


def _check(words: Sequence[str], vectors: np.ndarray, levels: int) -> None:
    if levels < 1:
        raise InputError(f"levels must be >= 1, got {levels}")
    if vectors.ndim != 2 or len(vectors) != len(words) or not vectors.shape[1]:
        raise InputError(f"{len(words)} words, but vectors of shape {vectors.shape}")
    if len(words) < 2:
        raise InputError(f"{len(words)} words, too few for clusters; give vectors of two or more")
    if len(set(words)) < len(words):
        repeated = next(word for word, count in Counter(words).items() if count > 1)
        raise InputError(f"{repeated!r} has several vectors; keep one")
    if len(wrong := np.flatnonzero(~np.isfinite(vectors.sum(1)))):
        raise InputError(f"the vector of {words[wrong[0]]!r} is not finite; correct it or remove the word")


def _bisect(rows: np.ndarray, order: np.ndarray, balanced: bool) -> int:
    """Sort the rows of a cluster (V, D) and their numbers (V,) in place by side; return the size of the first side."""
    if len(rows) < 2:
        return len(rows)
    total = rows.sum(0)
    side = _divide((rows - total / len(rows)) @ _principal_direction(rows), balanced)
    for _ in range(ROUNDS):
        size = np.count_nonzero(side)
        if size in (0, len(rows)):
            break
        second = side.astype(np.float32) @ rows
        low, high = (total - second) / (len(rows) - size), second / size
        new = _divide(rows @ (high - low) - (high @ high - low @ low) / 2, balanced)
        if (new == side).all():
            break
        side = new
    sorting = np.argsort(side, kind="stable")
    rows[:], order[:] = rows[sorting], order[sorting]
    return len(rows) - int(side.sum())


def _divide(scores: np.ndarray, balanced: bool) -> np.ndarray:
    """Return True for the rows of the second side: the larger half of the scores, or those above 0."""
    if not balanced:
        return scores > 0
    side = np.zeros(len(scores), bool)
    side[np.argsort(scores, kind="stable")[(len(scores) + 1) // 2 :]] = True
    return side


def _principal_direction(rows: np.ndarray) -> np.ndarray:
    """Return the direction of the largest variance (D,), whose largest component is positive."""
    mean = rows.mean(0, dtype=np.float64)
    covariance = (rows.T @ rows) / len(rows) - np.outer(mean, mean)
    last = len(mean) - 1
    direction = eigh(covariance, subset_by_index=[last, last])[1][:, 0]
    return (direction * np.sign(direction[np.abs(direction).argmax()])).astype(np.float32)
