"""Logins and TLS: tokens and their sources, key stores, and a warning about clear text."""
