"""Sequences that lie one after the other: sequence s is the tokens bounds[s], ..., bounds[s + 1] - 1."""

from structperc.kernels.compiled import inner_kernel


@inner_kernel
def longest(bounds):  # type: ignore[no-untyped-def]
    """Return the length of the longest sequence, 0 of none. numpy's `diff` would take three seconds to compile."""
    found = 0
    for s in range(len(bounds) - 1):
        found = max(found, bounds[s + 1] - bounds[s])
    return found
