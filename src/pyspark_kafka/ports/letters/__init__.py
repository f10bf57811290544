"""Where records go that cannot be decoded."""
