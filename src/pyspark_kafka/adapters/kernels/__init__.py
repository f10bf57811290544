"""Compiling functions to machine code, and shared parts of kernels."""
