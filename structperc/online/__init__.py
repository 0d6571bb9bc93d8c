"""Learning sequence by sequence: each update is made before the next sequence is scored, in one compiled call.

learner.py              learning from a batch with a scorer and an optimizer
compiled.py             the loop over sequences: scores, rival, changed features, update
compiled_segments.py    scores and rivals with segments, for this loop
parameter_averaging.py  means of the weights that several processes have moved
"""
