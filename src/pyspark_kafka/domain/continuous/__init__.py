"""Continuous processing: epochs, tasks, and what tasks and their driver tell each other."""

__all__ = ["progress"]
