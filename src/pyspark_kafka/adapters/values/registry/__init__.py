"""Schema registries over Confluent's HTTP API."""
