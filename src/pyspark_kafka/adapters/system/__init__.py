"""Adapters on the standard library: the clock and logging."""
