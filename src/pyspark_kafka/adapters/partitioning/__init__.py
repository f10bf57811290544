"""Choosing the partition of each row, as Java's producer does."""
