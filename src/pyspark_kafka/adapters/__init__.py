"""Adapters of the ports: Kafka clients, Spark, memory and the system."""
