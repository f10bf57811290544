"""The output of a sink: its columns, batches for the broker, and transactions."""

__all__ = ["errors", "group_seal", "transaction"]
