"""What a sink writes: its columns, batches for the broker, and transactions."""

__all__ = ["errors", "transaction"]
