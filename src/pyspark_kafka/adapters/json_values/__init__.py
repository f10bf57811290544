"""Values in JSON."""
