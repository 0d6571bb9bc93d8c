"""Implementations for CUDA: Triton kernels with the loop over tokens inside.

blocks.py        how sequences and labels are laid out, and the reads and writes that kernels share
onward.py        best scores, or log-sums, from each label on: what k-best search and sampling begin with
the others       one file for each of `structperc.ops.tensors`, with its functions

What the files say of registers and resident programs comes from compiling them for an H200 (compute capability 9.0,
132 multiprocessors of 65,536 registers and 32 programs at most, 4.3 TB/s); bytes and times are arithmetic. None of it
was measured on a GPU.
"""
