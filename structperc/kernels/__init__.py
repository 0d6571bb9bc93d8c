"""Loops over labels and features, compiled for a CPU; they take arrays and need no PyTorch.

compiled.py          how kernels are compiled and kept
instructions.py      what functions are made of that write instructions of their own
lanes.py             sixteen numbers side by side
arrays.py            features, weights and tag schemes as kernels read them
sequences.py         how long those are that lie one after the other
scores.py            features and weights -> the lattice of a sequence
stretches.py         parts of arrays, such as a mini-batch's, copied one after the other
onward.py            best scores from each label on; follow.py: the best labelling by these
forward_backward.py  probabilities of labels, by products of factors.py, or by log_sums.py where products might vanish
exponential.py       exp of numbers or lanes

Rooms after this one build their kernels of these; those that read tensors are in `ops.cpu`.
"""
