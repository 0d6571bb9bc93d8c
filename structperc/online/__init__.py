"""Mini-batches learned sequence by sequence, each with the weights that the one before left, in one compiled call.

learner.py     tensors of a batch and of a tagger in, what happened out
passes.py      the loop over the sequences, whose scores are those of `kernels.scores`
rivals.py      the rival of gold
changes.py     the weights that an update touches, and by how much
mixtures.py    what several processes have moved, mixed
arrays.py      what these read and write
"""

from structperc.online.learner import BatchResult, OnlineLearner, SequenceLearner, merge_results, update_local_weights

__all__ = ["BatchResult", "SequenceLearner", "OnlineLearner", "merge_results", "update_local_weights"]
