"""The options of sources, sinks and clients: their tables, their values and the parsers."""
