"""Compiling functions to machine code, and what kernels share."""
