"""Deterministic simulators of what surrounds the package's code, and of its faults."""
