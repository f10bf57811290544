"""Logins and TLS: tokens and their sources, key stores, and a warning about clear text."""

__all__ = ["clear_text", "tls_context", "tokens"]
