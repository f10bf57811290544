"""The client confluent-kafka, over librdkafka."""
