"""Planning and reading the batches of queries."""
