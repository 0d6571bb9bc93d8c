"""Implementations for a CPU: loops that numba compiles."""
