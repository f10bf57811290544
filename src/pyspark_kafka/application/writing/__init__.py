"""Writing the rows of queries."""

__all__ = ["group_take_over", "sink_task"]
