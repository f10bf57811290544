"""Typed values: their schemas, decoding, and encoding."""

__all__ = ["typed_records"]
