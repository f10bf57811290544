"""Offsets and ranges of topics, limits of what is read at a time, and what was lost."""

__all__ = [
    "admission",
    "data_loss",
    "errors",
    "leader_epochs",
    "offset_limits",
    "racks",
    "ranges",
    "record_limits",
    "records",
]
