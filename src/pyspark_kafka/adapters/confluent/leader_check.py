"""Whether the leaders of partitions serve them already.

A broker names the leader of a new partition before that leader serves it. If it refuses the first
batch of an idempotent producer and accepts the second one, librdkafka takes the first for a
duplicate, which was delivered: its records are lost (seen with librdkafka 2.16 and Kafka 4.3).
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from typing import TYPE_CHECKING, Final, final

from ...ports.clock import Deadline
from .error_codes import NOT_SERVING_ERRORS
from .librdkafka import LISTED_LATEST, TopicPartitionResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_PAUSE_S: Final = 0.005
"""How long to wait before leaders are asked again; a new partition is served in milliseconds."""

_MAX_WAIT_S: Final = 10.0
"""How long to wait for leaders: a partition without one delays others no longer."""

_SIGNALS_MS: Final = 200
"""How long a call of librdkafka's may last, which signals do not end."""


@final
class LeaderCheck:
    """Asks leaders for the end of each partition once, before the first record is produced."""

    def __init__(self, library: ctypes.CDLL, client: int) -> None:
        self._library = library
        self._client = client
        self._served: defaultdict[str, set[int]] = defaultdict(set)

    def wait(self, topic: str, partitions: Collection[int], timeout_s: float) -> None:
        """Wait until leaders serve these partitions, or in vain for so long at most."""
        deadline = Deadline.after(min(timeout_s, _MAX_WAIT_S))
        deadline.poll(lambda: self._ask(topic, partitions, deadline), _PAUSE_S)

    def _ask(self, topic: str, partitions: Collection[int], deadline: Deadline) -> bool:
        """Ask for partitions that were not served yet; return whether all are."""
        served = self._served[topic]
        unknown = [partition for partition in partitions if partition not in served]
        if not unknown:
            return True
        errors = dict(self._list_offsets(topic, unknown, deadline))
        waited = {
            partition for partition in unknown if errors.get(partition, 0) in NOT_SERVING_ERRORS
        }
        served.update(errors.keys() - waited)
        return not waited

    def _list_offsets(
        self, topic: str, partitions: Collection[int], deadline: Deadline
    ) -> Iterator[tuple[int, int]]:
        """Yield the partitions with the errors of their leaders, 0 for none."""
        library = self._library
        queue = library.rd_kafka_queue_new(self._client)
        wanted = library.rd_kafka_topic_partition_list_new(len(partitions))
        for partition in partitions:
            name = topic.encode()
            library.rd_kafka_topic_partition_list_add(wanted, name, partition)
            library.rd_kafka_topic_partition_list_set_offset(wanted, name, partition, LISTED_LATEST)
        library.rd_kafka_ListOffsets(self._client, wanted, None, queue)
        library.rd_kafka_topic_partition_list_destroy(wanted)
        event = None
        while not (event or deadline.has_passed):
            event = library.rd_kafka_queue_poll(queue, _SIGNALS_MS)
        try:
            if event:
                yield from self._results(event)
        finally:
            if event:
                library.rd_kafka_event_destroy(event)
            library.rd_kafka_queue_destroy(queue)

    def _results(self, event: int) -> Iterator[tuple[int, int]]:
        library = self._library
        result = library.rd_kafka_event_ListOffsets_result(event)
        if not result:
            return
        count = ctypes.c_size_t()
        infos = library.rd_kafka_ListOffsets_result_infos(result, ctypes.byref(count))
        for place in range(count.value):
            found = library.rd_kafka_ListOffsetsResultInfo_topic_partition(infos[place])
            each = TopicPartitionResult.from_address(found)
            yield each.partition, each.err
