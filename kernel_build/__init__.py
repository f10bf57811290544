"""Builds the library of kernels; the package's wheels have one for each platform."""
