"""Java's key stores and trust stores, for clients that are not written in Java."""
