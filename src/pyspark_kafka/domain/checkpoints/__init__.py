"""The entries of a query's logs, and where these are stored."""
