"""Decoding and encoding Avro values."""
