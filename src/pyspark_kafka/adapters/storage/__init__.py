"""Metadata logs, and channels of continuous queries, on the filesystems of fsspec."""
