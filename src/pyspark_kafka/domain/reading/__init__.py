"""Offsets and ranges of topics, limits of what is read at a time, and what was lost."""
