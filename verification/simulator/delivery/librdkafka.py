"""A simulated producer of librdkafka's, by the functions of its C API that the client calls.

It retries what a leader refuses, and takes all earlier records of a partition for delivered when a
leader accepts a later batch, as ``rd_kafka_dr_implicit_ack`` does.
"""

from __future__ import annotations

import ctypes
from collections import deque
from ctypes import CFUNCTYPE, c_int32, c_uint64
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError

from pyspark_kafka.adapters.confluent.handle import TopicMetadata
from pyspark_kafka.adapters.confluent.librdkafka import EVENT_DR, Message, TopicPartitionResult

from .faults import RETRY_MS, Fault
from .kafka import NO_OFFSET, Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..engine.scheduler import Process
    from .world import World

TOPIC: Final = "out"

_CLIENT: Final = 1
_TOPIC: Final = 2
_MESSAGE_WORDS: Final = 9
_RETRIABLE: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)


@dataclass(eq=False)
class _Record:
    message: Message
    value: bytes
    number: int
    """Its place among the records of the partition, from which its sequence number comes."""


@dataclass
class _Queue:
    """The records of a partition: those to be sent, in order, and the batches in flight."""

    waiting: list[_Record] = field(default_factory=list)
    in_flight: list[list[_Record]] = field(default_factory=list)
    queued: int = 0
    reported: int = 0
    """All records before this number are reported."""

    retry_ms: int = 0


class SimulatedProducer:
    """One producer, with the functions of the library and the methods of its handle."""

    client = _CLIENT
    topics = (TOPIC,)

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._number = number
        self._queues = [_Queue() for _ in range(world.settings.partitions)]
        self._unreported = 0
        self._reports: list[_Record] = []
        self._events: dict[int, Any] = {}
        self._handles = 100
        self._answers: dict[int, deque[int]] = {}
        self._waiting: Process | None = None
        self._fatal = 0
        self._is_closed = False
        self._kept: list[Any] = []
        self.rd_kafka_produce_batch = CFUNCTYPE(
            c_int32, c_uint64, c_int32, c_int32, c_uint64, c_int32
        )(self._produce_batch)
        never = CFUNCTYPE(c_uint64)(lambda: 0)
        self.rd_kafka_produceva = self.rd_kafka_error_code = self.rd_kafka_error_destroy = never
        self.rd_kafka_headers_new = self.rd_kafka_header_add = never
        self.rd_kafka_headers_destroy = never

    # The handle

    def topic(self, _: str) -> int:
        return _TOPIC

    def notify(self, file: int) -> None:
        """Do nothing: the query looks for reports by itself."""

    def close(self) -> None:
        self._is_closed = True

    def topic_metadata(self, _name: str, _timeout_s: float) -> TopicMetadata:
        self._wait(1)
        topic = self._world.kafka.topic
        if topic is None:
            return TopicMetadata(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return TopicMetadata(0, len(topic.logs), dict.fromkeys(range(len(topic.logs)), 1))

    def poll(
        self,
        wait_ms: int,
        read_line: object = None,  # noqa: ARG002
        take_reports: Callable[[int], object] | None = None,
    ) -> int:
        if not self._reports and wait_ms:
            self._wait(wait_ms)
        if not self._reports or take_reports is None:
            return 0
        taken, self._reports = self._reports, []
        event = self._handle(deque(taken))
        take_reports(event)
        self._unreported -= len(taken)
        return EVENT_DR

    # Records and their reports

    def rd_kafka_flush(self, _client: int, _ms: int) -> int:
        for partition in range(len(self._queues)):
            self._send(partition)
        return self._unreported

    def rd_kafka_outq_len(self, _client: int) -> int:
        return self._unreported

    def rd_kafka_fatal_error(self, _client: int, text: Any, _size: int) -> int:
        text.value = b"fatal"
        return self._fatal

    def rd_kafka_topic_name(self, _topic: int) -> bytes:
        return TOPIC.encode()

    def rd_kafka_message_headers(self, _message: int, _headers: Any) -> int:
        return KafkaError._NOENT

    def rd_kafka_event_message_array(self, event: int, address: int, most: int) -> int:
        left: deque[_Record] = self._events[event]
        count = min(most, len(left))
        taken = (c_uint64 * count).from_address(address)
        for place in range(count):
            record = left.popleft()
            self._kept.append(record)
            taken[place] = ctypes.addressof(record.message)
        return count

    def _produce_batch(
        self, _topic: int, _partition: int, _flags: int, messages: int, count: int
    ) -> int:
        for place in range(count):
            given = Message.from_address(messages + 8 * _MESSAGE_WORDS * place)
            value = ctypes.string_at(given.payload, given.len)
            queue = self._queues[given.partition]
            message = Message(
                rkt=_TOPIC,
                partition=given.partition,
                len=given.len,
                offset=NO_OFFSET,
                private=given.private,
            )
            queue.waiting.append(_Record(message, value, queue.queued))
            queue.queued += 1
            self._unreported += 1
        linger_ms = self._world.settings.linger_ms
        for partition in range(len(self._queues)):
            self._scheduler.at(linger_ms, partial(self._send, partition))
        return count

    def _send(self, partition: int) -> None:
        """Send batches, as many as may be in flight."""
        queue, settings = self._queues[partition], self._world.settings
        if self._is_closed or self._fatal or self._scheduler.now_ms < queue.retry_ms:
            return
        while queue.waiting and len(queue.in_flight) < settings.max_in_flight:
            batch = queue.waiting[: settings.batch_records]
            del queue.waiting[: settings.batch_records]
            queue.in_flight.append(batch)
            self._world.send("request", partition, 1, partial(self._ask, partition, batch))

    def _ask(self, partition: int, batch: list[_Record]) -> None:
        """Let the leader answer a request, and the answer arrive."""
        world, values = self._world, [each.value for each in batch]
        if self._is_closed:
            return
        answer = world.kafka.produce(self._number, partition, batch[0].number, values)
        world.tell(f"producer {self._number}", f"produce {partition}", values, answer)
        fired = world.decisions.has("answer", Fault.SLOW, world.settings.rate)
        late_ms = fired.between(10, 500) if fired else 1
        world.send("answer", partition, late_ms, partial(self._take, partition, batch, answer))

    def _take(self, partition: int, batch: list[_Record], answer: Answer) -> None:
        queue = self._queues[partition]
        queue.in_flight.remove(batch)
        if self._is_closed:
            return
        if not answer.error:
            self._report_before(queue, batch[0].number)
            for place, record in enumerate(batch):
                self._report(queue, record, answer.offset + place)
        elif answer.error in _RETRIABLE or batch[0].number > queue.reported:
            queue.waiting = sorted([*queue.waiting, *batch], key=lambda each: each.number)
            queue.retry_ms = self._scheduler.now_ms + RETRY_MS
            self._scheduler.at(RETRY_MS, partial(self._send, partition))
        else:
            self._fail(queue, batch, answer.error)
        self._send(partition)

    def _report_before(self, queue: _Queue, number: int) -> None:
        """Take what waits for another attempt for delivered: a later batch was accepted."""
        while queue.waiting and queue.waiting[0].number < number:
            self._report(queue, queue.waiting.pop(0), NO_OFFSET)

    def _fail(self, queue: _Queue, batch: list[_Record], error: int) -> None:
        """Fail as librdkafka does for a gap that it cannot explain: nothing more is sent."""
        self._fatal = error
        for record in [*batch, *queue.waiting]:
            record.message.err = error
            self._report(queue, record, NO_OFFSET)
        queue.waiting = []

    def _report(self, queue: _Queue, record: _Record, offset: int) -> None:
        record.message.offset = offset
        queue.reported = max(queue.reported, record.number + 1)
        self._reports.append(record)
        if self._waiting is not None:
            self._scheduler.wake(self._waiting)

    # Questions to brokers, whose answers are events of queues

    def rd_kafka_queue_new(self, _client: int) -> int:
        queue = self._handle(None)
        self._answers[queue] = deque()
        return queue

    def rd_kafka_queue_destroy(self, queue: int) -> None:
        del self._answers[queue]

    def rd_kafka_queue_poll(self, queue: int, ms: int) -> int | None:
        self._wait(min(ms, 1 if self._answers[queue] else ms))
        return self._answers[queue].popleft() if self._answers[queue] else None

    def rd_kafka_event_destroy(self, _event: int) -> None:
        """Do nothing: events are Python's."""

    def rd_kafka_TopicCollection_of_topic_names(self, _names: Any, _count: int) -> int:  # noqa: N802
        return _TOPIC

    def rd_kafka_TopicCollection_destroy(self, _topics: int) -> None:  # noqa: N802
        """Do nothing."""

    def rd_kafka_DescribeTopics(self, *given: Any) -> None:  # noqa: N802
        topic = self._world.kafka.topic
        self._answers[given[-1]].append(self._handle(None if topic is None else topic.number))

    def rd_kafka_event_DescribeTopics_result(self, event: int) -> int:  # noqa: N802
        return event

    def rd_kafka_DescribeTopics_result_topics(self, result: int, count: Any) -> list[int]:  # noqa: N802
        count._obj.value = 1
        return [result]

    def rd_kafka_TopicDescription_topic_id(self, described: int) -> int | None:  # noqa: N802
        return described if self._events[described] is not None else None

    def rd_kafka_Uuid_most_significant_bits(self, _id: int) -> int:  # noqa: N802
        return 7

    def rd_kafka_Uuid_least_significant_bits(self, described: int) -> int:  # noqa: N802
        number: int = self._events[described]
        return number

    def rd_kafka_topic_partition_list_new(self, _count: int) -> int:
        return self._handle([])

    def rd_kafka_topic_partition_list_add(self, partitions: int, _topic: bytes, number: int) -> int:
        self._events[partitions].append(number)
        return 0

    def rd_kafka_topic_partition_list_set_offset(self, *_: object) -> int:
        return 0

    def rd_kafka_topic_partition_list_destroy(self, _partitions: int) -> None:
        """Do nothing."""

    def rd_kafka_ListOffsets(self, _client: int, partitions: int, _: object, queue: int) -> None:  # noqa: N802
        kafka = self._world.kafka
        found = [
            TopicPartitionResult(partition=each, err=kafka.error_of(each))
            for each in self._events[partitions]
        ]
        self._answers[queue].append(self._handle(found))

    def rd_kafka_event_ListOffsets_result(self, event: int) -> int:  # noqa: N802
        return event

    def rd_kafka_ListOffsets_result_infos(self, result: int, count: Any) -> Sequence[Any]:  # noqa: N802
        found: Sequence[Any] = self._events[result]
        count._obj.value = len(found)
        return found

    def rd_kafka_ListOffsetsResultInfo_topic_partition(self, info: Any) -> int:  # noqa: N802
        return ctypes.addressof(info)

    # Time

    def _handle(self, content: Any) -> int:
        self._handles += 1
        self._events[self._handles] = content
        return self._handles

    def _wait(self, ms: int) -> None:
        self._waiting = self._scheduler.current
        self._scheduler.sleep(max(1, ms))
        self._waiting = None
