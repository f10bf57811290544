"""A deterministic simulator of Spark and Kafka around the exactly-once sink.

One seed decides everything. The package's domain and application run unchanged; Spark, people, the
network and time are simulated.
"""
