"""The options of sources, sinks and clients: their tables, their values and the parsers."""

__all__ = [
    "client_settings",
    "option",
    "servers",
    "settings_table",
    "sink",
    "sink_table",
    "source",
]
