"""Writing the rows of queries."""
