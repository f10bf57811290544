"""Finders of a host's rack."""
