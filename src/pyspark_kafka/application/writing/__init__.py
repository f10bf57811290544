"""Writing the rows of queries."""

__all__ = ["sink_task"]
