"""Builds the library of kernels, of which the package's wheel has one for its platform."""
