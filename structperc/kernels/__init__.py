"""Loops over tokens, labels and features, compiled with numba for a CPU. They work on arrays and need no PyTorch.

jit.py                decorators that compile a function and keep its code
numba_internals.py    uses of numba without a public counterpart
simd.py               vectors of numbers
array_types.py        features, weights and tag schemes as arrays
scores.py             features and weights -> the lattice of a sequence
best_path.py          the best label sequence
sum_product.py        probabilities of labels
best_segmentation.py  the best segmentation
labelled_segments.py  labels and segments -> scores of whole segments
semi_markov_sums.py   probabilities of segments
inner_products.py     inner products of long vectors
slices.py             slices of arrays copied into mini-batches

Kernels that read tensors are in `structperc.ops.cpu`.
"""
