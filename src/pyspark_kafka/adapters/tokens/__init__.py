"""Adapters of ``TokenProvider``, and the provider of a login."""
