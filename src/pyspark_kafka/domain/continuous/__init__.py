"""Continuous processing: epochs, tasks, and the messages between tasks and their driver."""

__all__ = ["progress"]
