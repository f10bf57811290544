"""Typed values: their schemas, decoding, and encoding."""
