"""Protobuf values: their descriptors, their Spark types, and decoding them in machine code."""
