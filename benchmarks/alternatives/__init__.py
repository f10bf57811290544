"""Comparison of this library with alternatives, each in its own environment."""
