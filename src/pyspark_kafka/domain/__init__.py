"""The rules of reading Kafka from Spark: pure values and functions, no I/O and no clock."""
