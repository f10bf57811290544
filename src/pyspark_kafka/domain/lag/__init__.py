"""How far a query is behind its topics."""
