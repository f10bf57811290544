"""Typed values: their data types, formats, schemas and failures."""

__all__ = ["data_types", "dead_letter", "errors", "registry", "value_options"]
