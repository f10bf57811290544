"""What librdkafka says of a truncated log (KIP-320).

It compares the epoch of what it fetched with the log when another leader is elected, and stops to
fetch if they differ. That is the same error as an offset out of range: only its text tells where.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...domain.errors import LogTruncatedError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from ...domain.topic_partition import TopicPartition

_TRUNCATED: Final = re.compile(r"log truncation detected at .*?: broker end offset is (\d+) ")
_NO_EPOCH: Final = "No epoch found less or equal to"
"""The texts of ``rd_kafka_toppar_handle_OffsetForLeaderEpoch``, librdkafka 2.15 and 2.16."""


def diverges_at(error: KafkaError, offset: int) -> int | None:
    """Return up to where the log is as it was read, ``None`` if that is at least to ``offset``.

    What librdkafka fetched ahead may be lost, and nothing of what was read.
    """
    found = _TRUNCATED.search(error.str())
    end_offset = offset if found is None else int(found[1])
    return end_offset if end_offset < offset else None


def require_same_log(partition: TopicPartition, offset: int, error: KafkaError) -> None:
    """Raise that the log has other records than were read up to ``offset``, if an error says so.

    :raises LogTruncatedError: from where on they differ.
    """
    found = diverges_at(error, offset)
    if found is not None:
        raise LogTruncatedError(partition, offset, found)


def knows_epochs(error: KafkaError) -> bool:
    """Return whether a leader could compare an epoch."""
    return _NO_EPOCH not in error.str()
