"""Implementations for CUDA: Triton kernels with the loop over tokens inside.

blocks.py holds what the kernels share; the other modules are those of `structperc.ops.reference`. The kernels are
compiled for compute capability 9.0 and interpreted in tests; `benchmarks/cuda.py` measures them on a GPU.
"""
