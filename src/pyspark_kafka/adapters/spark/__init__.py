"""Spark's Python data source."""
