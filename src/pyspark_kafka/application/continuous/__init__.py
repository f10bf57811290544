"""Running continuous queries and their tasks."""

__all__ = ["progress"]
