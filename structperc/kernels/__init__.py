"""Loops over tokens, labels and features, compiled with numba for a CPU. They work on arrays and need no PyTorch.

jit.py                 decorators that compile a function and keep its code
numba_internals.py     uses of numba without a public counterpart
simd.py                vectors of numbers
arrays.py              features, weights and tag schemes as arrays
scores.py              features and weights -> the lattice of a sequence
viterbi.py             the best label sequence
forward_backward.py    probabilities of labels
semi_markov.py         the best segmentation
semi_markov_sums.py    probabilities of segments
inner_products.py      inner products of long vectors
slices.py              slices of arrays copied into mini-batches

Kernels that read tensors are in `structperc.ops.cpu`.
"""
