"""Logins, rights and TLS: why a cluster refuses a client, and what to do about it."""

__all__ = ["errors", "login", "oauth", "policy", "rights", "secrets", "tls"]
