"""Dead letters in a Kafka topic, with any client."""
