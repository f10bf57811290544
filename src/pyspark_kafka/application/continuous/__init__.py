"""Running continuous queries, and what their tasks do."""

__all__ = ["progress"]
