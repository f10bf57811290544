"""From what a client hands out to Arrow."""
