"""Facts about a fetch that only the texts of librdkafka's lines and errors contain.

Whether a topic is still the one that was read (KIP-516): messages carry no id, and no function
returns one for a topic that is fetched. Whether a log was truncated (KIP-320): librdkafka compares
the epoch of fetched records with the log when another leader is elected, and stops fetching if they
differ. Its error is the same as for an offset out of range.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, final

from ...domain.reading.errors import LogTruncatedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import KafkaError

    from ...domain.topic_partition import TopicPartition

_DEBUG: Final = "debug"

_TOPIC_CHANGED: Final = re.compile(r"Topic (\S+) changed id from (\S+) to (\S+)")
"""librdkafka's line, with ``debug=metadata``, before it fetches from a recreated topic.

It continues at the old offset (the FIXME in ``rd_kafka_topic_metadata_update``, librdkafka
2.16)."""

_TRUNCATED: Final = re.compile(r"log truncation detected at .*?: broker end offset is (\d+) ")
_NO_EPOCH: Final = "No epoch found less or equal to"
"""The texts of ``rd_kafka_toppar_handle_OffsetForLeaderEpoch``, librdkafka 2.15 and 2.16."""

_ZEROS: Final = "A="
"""The base64 of the id of a topic that has none, or whose id is not known yet."""


def topic_debug(config: Mapping[str, str]) -> dict[str, str]:
    """Return the setting of a consumer that logs topic ids, and the user's own contexts."""
    contexts = filter(None, (config.get(_DEBUG), "metadata"))
    return {_DEBUG: ",".join(contexts)}


@final
class TopicIds:
    """The ids of the topics that one consumer fetches.

    A line is in the queue of events before the first record of the new topic is in its queue, if
    the topic is fetched by its id (Kafka 3.1).
    """

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._replaced: set[str] = set()
        self._recreations: Counter[str] = Counter()

    def recreations(self, topic: str) -> int:
        """Return how often the topic was created again, according to the lines."""
        return self._recreations[topic]

    def read_line(self, line: str) -> str | None:
        """Return the topic that was created again, if this line of librdkafka's reports one."""
        changed = _TOPIC_CHANGED.search(line)
        if changed is None:
            return None
        topic, old, new = changed.groups()
        known = self._ids.get(topic) or (old if old.strip(_ZEROS) else "")
        # A broker that lags behind has the previous id, and one before Kafka 2.8 has none.
        if new in self._replaced or not new.strip(_ZEROS):
            return None
        self._ids[topic] = new
        if not known or known == new:
            return None
        self._replaced.add(known)
        self._recreations[topic] += 1
        return topic


def require_same_log(partition: TopicPartition, offset: int, error: KafkaError) -> None:
    """Raise an error if the log diverged from the records that were read up to ``offset``.

    It does not raise if only records that librdkafka has fetched ahead are lost.

    :raises LogTruncatedError: if the log diverged.
    """
    found = _TRUNCATED.search(error.str())
    end_offset = offset if found is None else int(found[1])
    if end_offset < offset:
        raise LogTruncatedError(partition, offset, end_offset)


def knows_epochs(error: KafkaError) -> bool:
    """Return whether a leader could compare an epoch."""
    return _NO_EPOCH not in error.str()
