"""How far a query is behind its topics."""

__all__ = ["lag"]
