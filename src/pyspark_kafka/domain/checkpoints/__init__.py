"""The entries of a query's logs, and where these are stored."""

__all__ = ["checkpoint_log", "entries", "offset_rewrite", "storage_path"]
