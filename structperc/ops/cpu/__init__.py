"""Implementations for a CPU, compiled with numba."""
