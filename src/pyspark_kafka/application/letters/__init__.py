"""Reading and counting dead letters."""
