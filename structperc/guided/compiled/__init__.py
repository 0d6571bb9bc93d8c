"""Guided learning of whole mini-batches, compiled: sentence after sentence within one call.

queue.py                  which candidate comes next
scores.py, states.py      scores of actions; the best states of a candidate
chart.py, candidates.py   spans of one sentence; what may come next to them
search.py                 Algorithm 1
lessons.py                what learning adds: gold, and how weights move
aggressive.py, early.py   Algorithm 2, a file for each rule

Modules are imported on first use: importing the library needs no compiler.
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from structperc.guided.compiled.aggressive import learn_aggressively
    from structperc.guided.compiled.early import learn_early
    from structperc.guided.compiled.scores import rows
    from structperc.guided.compiled.search import decide

__all__ = ["rows", "decide", "learn_aggressively", "learn_early"]

__getattr__ = lazy_imports(
    __name__,
    {
        f"{__name__}.scores": ["rows"],
        f"{__name__}.search": ["decide"],
        f"{__name__}.aggressive": ["learn_aggressively"],
        f"{__name__}.early": ["learn_early"],
    },
)
