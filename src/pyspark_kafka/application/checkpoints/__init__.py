"""Reading and rewriting the checkpoints of queries."""
