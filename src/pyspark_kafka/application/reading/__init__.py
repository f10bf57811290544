"""Planning and reading the batches of queries."""

__all__ = ["offsets", "planner", "range_read", "stream"]
