"""librdkafka's reports of a truncated log (KIP-320).

It compares the epoch of what it fetched with the log when another leader is elected, and stops to
fetch if they differ. That is the same error as an offset out of range: only its text tells where.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...domain.reading.errors import LogTruncatedError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from ...domain.topic_partition import TopicPartition

_TRUNCATED: Final = re.compile(r"log truncation detected at .*?: broker end offset is (\d+) ")
_NO_EPOCH: Final = "No epoch found less or equal to"
"""The texts of ``rd_kafka_toppar_handle_OffsetForLeaderEpoch``, librdkafka 2.15 and 2.16."""


def require_same_log(partition: TopicPartition, offset: int, error: KafkaError) -> None:
    """Raise that a log has other records than were read up to ``offset``, if an error says so.

    It does not if librdkafka has only fetched ahead what is lost.

    :raises LogTruncatedError: if it does.
    """
    found = _TRUNCATED.search(error.str())
    end_offset = offset if found is None else int(found[1])
    if end_offset < offset:
        raise LogTruncatedError(partition, offset, end_offset)


def knows_epochs(error: KafkaError) -> bool:
    """Return whether a leader could compare an epoch."""
    return _NO_EPOCH not in error.str()
