"""Typed values: their data types, formats, schemas and failures."""
