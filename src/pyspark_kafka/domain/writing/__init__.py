"""What a sink writes: its columns, batches for the broker, and transactions."""

__all__ = ["errors", "group_seal", "transaction"]
