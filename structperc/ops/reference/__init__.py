"""Implementations in tensor operations: the definitions, on any device."""
