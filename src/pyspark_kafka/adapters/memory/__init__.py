"""Kafka in memory, for tests of pipelines and for trying things out without a broker."""
