"""Benchmarks of typed values: JSON, Avro and Protobuf."""
