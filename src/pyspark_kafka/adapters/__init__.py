"""The means: Kafka clients, Spark, memory and the system, each behind the ports."""
