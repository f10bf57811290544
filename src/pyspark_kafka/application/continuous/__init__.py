"""Running continuous queries, and what their tasks do."""
