"""librdkafka's delivery reports, counted in one pass of machine code."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ...domain.topic_partition import TopicPartition
from ..kernels.kernel import kernel
from ..kernels.memory import load_int32, load_uint64
from .librdkafka import Message

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterator

    from ..kernels.arrays import Int64Array, UInt64Array

REPORTS: Final = 1_024
"""The reports that are taken from an event at once."""

_ERR: Final = np.uint64(Message.err.offset)
_RKT: Final = np.uint64(Message.rkt.offset)
_PARTITION: Final = np.uint64(Message.partition.offset)
_OFFSET: Final = np.uint64(Message.offset.offset)
_OPAQUE: Final = np.uint64(Message.private.offset)

_ANY_OFFSET: Final = -(2**63)
"""Without acknowledgements there are no offsets."""

_OUTPUT, _TOPIC, _OF, _COUNT = range(4)
"""The columns of a run: its output, librdkafka's topic, the partition, and how many records."""


@final
class DeliveryReports:
    """Counts delivered records by the number of the output that they belong to.

    If a leader refuses a batch of an idempotent producer and accepts the next one, librdkafka
    reports the records of the first as delivered, too (``rd_kafka_dr_implicit_ack``). That is right
    only if the leader had them: that of a topic that was recreated lost them. Only an offset proves
    that a leader has appended a record.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        acknowledge: Callable[[str, int, int], None] = lambda *_: None,
        *,
        is_idempotent: bool,
    ) -> None:
        """Take the function to call with each topic, partition and number of delivered records."""
        self._library = library
        self._acknowledge = acknowledge
        self._min_offset = 0 if is_idempotent else _ANY_OFFSET
        self._messages: UInt64Array = np.zeros(REPORTS, np.uint64)
        self._runs: Int64Array = np.zeros((REPORTS, 4), np.int64)
        self._delivered = Counter[int]()
        self._appended = set[TopicPartition]()
        """The partitions whose leaders have appended a record."""

    def take(self, event: int) -> Iterator[int]:
        """Count the delivered records of an event, and yield the addresses of the others."""
        messages = self._messages.ctypes.data
        names = dict[int, str]()
        while count := self._library.rd_kafka_event_message_array(event, messages, REPORTS):
            place = 0
            while place < count:
                place, runs = count_delivered(
                    self._messages[:count], place, self._min_offset, self._runs
                )
                self._count(self._runs[:runs], names)
                if place < count:
                    yield int(self._messages[place])
                    place += 1

    def _count(self, runs: Int64Array, names: dict[int, str]) -> None:
        """Count runs of delivered records, with the topics' ``names`` that are known by address.

        A topic may be freed after an event, and another one get its address.
        """
        for output, topic, partition, delivered in runs.tolist():
            if topic not in names:
                names[topic] = self._library.rd_kafka_topic_name(topic).decode()
            self._delivered[output] += delivered
            self._appended.add(TopicPartition(names[topic], partition))
            self._acknowledge(names[topic], partition, delivered)

    def has_appended(self, partition: TopicPartition) -> bool:
        """Return whether a record of this partition was reported with its offset before."""
        return partition in self._appended

    def deliver(self, address: int) -> None:
        """Count a record that ``take`` has yielded as delivered."""
        self._delivered[Message.from_address(address).private or 0] += 1

    def take_delivered(self) -> list[tuple[int, int]]:
        """Return the outputs with records delivered since the last call, and their numbers."""
        delivered = list(self._delivered.items())
        self._delivered.clear()
        return delivered


@kernel("uint64[]", "int64", "int64", "int64[,]", results=2)
def count_delivered(messages: Any, place: int, min_offset: int, runs: Any) -> Any:
    """Write how many messages in a row have the same output and partition, from ``place`` on.

    Return the place of the first message with an error or a smaller offset than ``min_offset``, or
    the number of messages, and how many runs were written.
    """
    count = 0
    while place < len(messages):
        message = messages[place]
        if load_int32(message + _ERR) != 0 or np.int64(load_uint64(message + _OFFSET)) < min_offset:
            break
        output = np.int64(load_uint64(message + _OPAQUE))
        topic = np.int64(load_uint64(message + _RKT))
        partition = np.int64(load_int32(message + _PARTITION))
        if (
            count == 0
            or runs[count - 1, _OUTPUT] != output
            or runs[count - 1, _OF] != partition
            or runs[count - 1, _TOPIC] != topic
        ):
            runs[count, _OUTPUT] = output
            runs[count, _TOPIC] = topic
            runs[count, _OF] = partition
            runs[count, _COUNT] = 0
            count += 1
        runs[count - 1, _COUNT] += 1
        place += 1
    return place, count
