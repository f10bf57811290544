"""Reading and rewriting the checkpoints of queries."""

__all__ = ["logs"]
