"""The capabilities of a client and of the world that it is tested in."""

from __future__ import annotations

import enum
from typing import Final


class Capability(enum.Enum):
    """A feature that a world declares; tests that need an undeclared one are skipped."""

    ADD_PARTITIONS = "adding partitions to topics"
    COMPRESSION = "topics with a `compression.type`"
    DELETE_RECORDS = "deleting records"
    DELETE_TOPICS = "deleting topics"
    GROUPS = "committed offsets of consumer groups"
    HEADERS = "record headers"
    TIMESTAMPS = "record timestamps, and offsets by timestamp"
    TRANSACTIONAL_WRITES = "transactions that one process begins and another ends"
    TRANSACTIONS = "transactions that are committed and aborted"


ALL: Final = frozenset(Capability)
"""The capabilities of Apache Kafka."""
