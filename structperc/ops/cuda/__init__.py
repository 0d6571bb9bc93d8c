"""Implementations for CUDA: Triton kernels with the loop over tokens inside.

blocks.py holds what the kernels share, chunks.py divides few long sequences into chunks that are searched in parallel;
segments.py is the layout for segments, segmentations.py their lists and samples; the other modules are those of
`structperc.ops.reference`. The kernels are compiled for compute capabilities 8.0 and 9.0 and interpreted in tests;
`benchmarks/gpu.sh` measures them on a GPU.
"""
