"""Metadata logs on the filesystems of fsspec."""
