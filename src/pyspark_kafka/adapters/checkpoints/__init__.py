"""Metadata logs on the filesystems of fsspec."""

__all__ = ["directory", "storages"]
