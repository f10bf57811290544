"""Examining a cluster and its topics."""
