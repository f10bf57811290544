"""What ``pyspark-kafka doctor`` makes of the facts that it finds: findings, and what to do next."""
