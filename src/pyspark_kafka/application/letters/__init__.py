"""Reading and counting dead letters."""

__all__ = ["dead_letter_log"]
