"""What a client and the world it is tested in are able to do."""

from __future__ import annotations

import enum
from typing import Final


class Capability(enum.Enum):
    """Something that a world declares; the tests of what it does not declare are skipped."""

    ADD_PARTITIONS = "topics that grow"
    COMPRESSION = "topics with a `compression.type`"
    DELETE_RECORDS = "logs that lose their first records"
    DELETE_TOPICS = "topics that go away"
    GROUPS = "offsets that consumer groups commit"
    HEADERS = "headers of records"
    TIMESTAMPS = "records with the time that was given to them, and offsets by time"
    TRANSACTIONAL_WRITES = "transactions that one process begins and another one ends"
    TRANSACTIONS = "transactions that are committed and aborted"


ALL: Final = frozenset(Capability)
"""What Apache Kafka is able to do."""
