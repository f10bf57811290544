"""Kafka's record format: batches, codecs, checksums, and their way to and from Arrow columns."""
