"""Metadata logs on the storages of fsspec."""
