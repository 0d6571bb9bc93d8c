"""Implementations for CUDA: Triton kernels with the loop over tokens inside."""
