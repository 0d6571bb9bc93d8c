"""The only module that uses internals of Lightning which have no public counterpart.

Reason: `starts_commands` (`_start_method`): a strategy does not show how it starts its processes. Spawned and forked
ones end with the training, and the averages of the weights with them.
"""

from pytorch_lightning.strategies import Strategy

CHECKED_WITH = (2, 6)  # the latest version of pytorch_lightning that the tests passed with


def starts_commands(strategy: Strategy) -> bool:
    """Return True if each further process runs the command of the first one; False also for unknown strategies."""
    return getattr(strategy, "_start_method", None) == "popen"
