"""librdkafka's producer: rows go into its queues, and their delivery is reported."""

from __future__ import annotations

import ctypes
import math
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from ...domain.security.rights import IDEMPOTENT_WRITE, Operation, topic_right
from ...domain.topic_partition import TopicPartition
from ...ports.clock import Deadline, still_waiting
from ..partitioning.topic_rows import NO_PARTITION
from .awaited_records import AwaitedRecords
from .delivery_errors import (
    WITHOUT_OFFSET,
    Undelivered,
    delivery_error,
    produce_error,
    to_report,
)
from .error_codes import (
    FATAL,
    MESSAGE_TIMED_OUT,
    NOT_SERVING_ERRORS,
    PURGED_ERRORS,
    QUEUE_FULL,
    REFUSED_RESOURCES,
    UNREACHABLE_ERRORS,
)
from .handle import ERROR_SIZE, PURGE_ALL
from .librdkafka import (
    EVENT_DR,
    LISTED_LATEST,
    PRODUCER,
    Message,
    TopicPartitionResult,
    partition_list,
)
from .produce_kernel import ProducerCalls, bases_of, produce_full, produce_plain, uncounted_bytes
from .producer_config import IDEMPOTENCE
from .report_kernel import DeliveryReports

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ...domain.security.rights import Right
    from .cluster import Cluster
    from .handle import TopicMetadata
    from .partitioned_rows import PartitionedRows

FLUSH_MS: Final = 100
"""How long a flush waits for reports before failures are checked."""

_PURGED_MS: Final = 1_000
"""How long to wait for the first report of a purged record."""

FULL_MS: Final = 1
"""How long to wait when the queue is full; librdkafka does not report when it has room."""

_METADATA_S: Final = 0.25
_PAUSE_MS: Final = 10
"""The wait of the first request for metadata, which doubles, and the pause between requests."""


@final
class ProducerHandle:
    """A producer handle of librdkafka's, for the process that creates it."""

    def __init__(
        self,
        cluster: Cluster,
        config: Mapping[str, str],
        max_uncounted: int,
        topic: str | None = None,
        delivery_timeout_s: float = math.inf,
    ) -> None:
        """Create the handle; no request is sent yet, but a first login.

        Records fail once their partition has accepted none for ``delivery_timeout_s``.

        ``max_uncounted`` limits the queued bytes of keys and headers, which librdkafka does not
        count; one call of ``send`` may exceed it. All records go to ``topic``, if there is one.

        :raises PysparkKafkaError: as ``Cluster.new_handle``.
        """
        library = self._library = cluster.library
        self._errors = cluster.errors
        self._handle = cluster.new_handle(PRODUCER, config, EVENT_DR)
        client = self._handle.client
        self._calls = ProducerCalls(library, client)
        is_idempotent = config.get(IDEMPOTENCE) == "true"
        self._awaited = AwaitedRecords(delivery_timeout_s)
        self._reports = DeliveryReports(
            library, self._awaited.acknowledge, is_idempotent=is_idempotent
        )
        self._leaders = LeaderCheck(library, client) if is_idempotent else None
        self._failed: Undelivered | None = None
        self._max_uncounted = max_uncounted
        self._only_topic = topic
        self._uncounted = 0

    def partitions(self, topic: str, timeout_s: float) -> int:
        """Return the number of partitions of a topic, from a broker, once their leaders serve them.

        :raises KafkaException: if there is no response, or it is an error.
        """
        deadline = Deadline.after(timeout_s)
        metadata = self._metadata(topic, timeout_s)
        if metadata.error:
            raise KafkaException(KafkaError(metadata.error))
        if self._leaders is not None:
            self._leaders.wait(topic, metadata.led, deadline.remaining)
        return metadata.partitions

    def wait(self, seconds: float) -> None:
        """Handle librdkafka's events for so long at most.

        :raises AuthenticationError: if a broker refuses the login: it was changed.
        :raises TlsError: if a TLS handshake fails.
        """
        self._handle_events(round(seconds * 1_000))

    def notify(self, file: int) -> None:
        """Write a byte to a file when there are events."""
        self._handle.notify(file)

    def take_delivered(self) -> list[tuple[int, int]]:
        """Return how many records of each output were delivered since the last call.

        :raises PysparkKafkaError: if a record was not delivered.
        """
        self._check()
        if self._uncounted and self.is_reported:
            self._uncounted = 0
        return self._reports.take_delivered()

    def send(self, rows: PartitionedRows, output: int = 0) -> None:
        """Queue records of an output, and block while the queue is full.

        :raises PysparkKafkaError: if one of these, or an earlier one, fails.
        """
        handles = np.array([self._handle.topic(topic) for topic in rows.topics], np.uint64)
        topics = handles, rows.topic_ends
        columns = rows.columns.arrays
        bases = bases_of(columns)
        produce = produce_plain if rows.is_plain else produce_full
        at = 0
        self._check()
        if self._uncounted > self._max_uncounted:
            self.flush()
        self._uncounted += uncounted_bytes(columns, rows.rows)
        while True:
            queued, code = produce(
                columns,
                bases,
                rows.rows,
                rows.partitions,
                at,
                topics,
                output,
                self._calls.arrays,
            )
            self._awaited.add(rows, at, queued)
            at = queued
            if code == 0:
                return
            if code != QUEUE_FULL:
                raise self._produce_error(rows, at, code)
            self._check(FULL_MS)

    @property
    def is_reported(self) -> bool:
        """Whether the reports of all records were taken."""
        return not self._library.rd_kafka_outq_len(self._handle.client)

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        :raises PysparkKafkaError: as soon as one fails.
        """
        # Records count until their reports are taken.
        while self._library.rd_kafka_flush(self._handle.client, 0):
            self._check(FLUSH_MS)
        self._check()
        self._uncounted = 0

    def failure(self) -> Exception | None:
        """Return the error of a record that was not delivered, if there is one.

        An idempotent producer that gets no id purges its records: the reason is a fatal error.
        """
        code, reason = self._fatal_error()
        if self._failed is not None and code not in REFUSED_RESOURCES:
            return delivery_error(self._errors, self._failed)
        if not code:
            return None
        error = KafkaError(code, reason)
        return self._errors.error("a request for a producer id", error, *self._rights())

    def close(self) -> None:
        """Drop unflushed records, and destroy the handle; a second call does nothing."""
        self._handle.close()

    def _metadata(self, topic: str, timeout_s: float) -> TopicMetadata:
        deadline, wait_s = Deadline.after(timeout_s), _METADATA_S
        while True:
            try:
                return self._handle.topic_metadata(topic, min(wait_s, deadline.remaining))
            except KafkaException as error:
                # The request waited without handling events.
                self._handle_events(_PAUSE_MS)
                wait_s *= 2
                if error.args[0].code() not in UNREACHABLE_ERRORS or deadline.has_passed:
                    raise

    def _check(self, wait_ms: int = 0) -> None:
        self._handle_events(wait_ms)
        stalled = self._awaited.stalled()
        if stalled is not None and self._failed is None:
            reason = KafkaError(MESSAGE_TIMED_OUT).str()
            self._failed = Undelivered(*stalled, 0, MESSAGE_TIMED_OUT, reason)
            self._library.rd_kafka_purge(self._handle.client, PURGE_ALL)
            self._handle_events(_PURGED_MS)
        failure = self.failure()
        if failure is not None:
            raise failure

    def _handle_events(self, wait_ms: int) -> None:
        """Handle all pending events, or wait for the next one."""
        still_waiting()
        while self._handle.poll(wait_ms, take_reports=self._take_reports):
            wait_ms = 0
        self._errors.raise_refusal()

    def _take_reports(self, event: int) -> None:
        is_same: dict[str, bool] = {}
        for address in self._reports.take(event):
            record = self._undelivered(address)
            partition = TopicPartition(record.topic, record.partition)
            is_known = not record.code and self._reports.has_appended(partition)
            if is_known and self._is_same(record.topic, is_same):
                self._reports.deliver(address)
                self._awaited.acknowledge(*partition, 1)
            elif record.code in PURGED_ERRORS:
                self._measure_failed(record)
            else:
                self._failed = to_report(self._failed, record)

    def _measure_failed(self, purged: Undelivered) -> None:
        """Take the size of the record that timed out from the report of its purge.

        For others, the fatal error that led to their purge explains more.
        """
        failed = self._failed
        if failed is None or failed.size or failed.code != MESSAGE_TIMED_OUT:
            return
        if failed.topic == purged.topic and failed.partition in {purged.partition, NO_PARTITION}:
            self._failed = replace(failed, size=purged.size)

    def _is_same(self, topic: str, known: dict[str, bool]) -> bool:
        """Return whether a topic is the first record's; each topic of a batch is looked up once."""
        if topic not in known:
            known[topic] = self._leaders is not None and self._leaders.is_same(topic)
        return known[topic]

    def _undelivered(self, address: int) -> Undelivered:
        library, message = self._library, Message.from_address(address)
        return Undelivered(
            topic=library.rd_kafka_topic_name(message.rkt).decode(),
            partition=message.partition,
            size=message.len + message.key_len + self._header_bytes(address),
            code=message.err,
            # rd_kafka_message_errstr would return the value of the failed record, and
            # rd_kafka_message_produce_errstr memory that is freed, if the broker sent a text.
            reason=KafkaError(message.err).str() if message.err else WITHOUT_OFFSET,
        )

    def _header_bytes(self, address: int) -> int:
        library, headers = self._library, ctypes.c_void_p()
        if library.rd_kafka_message_headers(address, ctypes.byref(headers)):
            return 0
        name, value, size = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_size_t()
        out = [ctypes.byref(each) for each in (name, value, size)]
        total = index = 0
        while not library.rd_kafka_header_get_all(headers, index, *out):
            total += len(name.value or b"") + size.value
            index += 1
        return total

    def _rights(self) -> Iterator[Right]:
        """Yield the rights to get a producer id."""
        topics = {self._only_topic} if self._only_topic else self._handle.topics
        for topic in sorted(topics):
            yield topic_right(Operation.WRITE, topic)
        yield IDEMPOTENT_WRITE

    def _fatal_error(self) -> tuple[int, str]:
        text = ctypes.create_string_buffer(ERROR_SIZE)
        code = self._library.rd_kafka_fatal_error(self._handle.client, text, ERROR_SIZE)
        return code, text.value.decode(errors="replace")

    def _produce_error(self, rows: PartitionedRows, place: int, code: int) -> Exception:
        failure = self.failure()
        if code == FATAL and failure is not None:
            return failure
        reason = KafkaError(code).str()
        if code == FATAL:
            reason = self._fatal_error()[1] or reason
        partition = int(rows.partitions[place])
        record = Undelivered(rows.topic(place), partition, rows.size(place), code, reason)
        return produce_error(self._errors, record)


_PAUSE_S: Final = 0.005
"""How long to wait before leaders are asked again; a new partition is served in milliseconds."""

_MAX_WAIT_S: Final = 10.0
"""How long to wait for leaders: a partition without one delays others no longer than that."""

_SIGNALS_MS: Final = 200
"""The longest wait of one call of librdkafka's: signals do not interrupt it."""


@final
class LeaderCheck:
    """Asks leaders for the end of each partition once, before the first record is produced.

    A broker names the leader of a new partition before that leader serves it. If the leader refuses
    the first batch of an idempotent producer and accepts the second one, librdkafka takes the first
    for a delivered duplicate: its records are lost (librdkafka 2.16 and Kafka 4.3). A leader that
    knows the producer would refuse the second batch, so this happens only where the log has no
    record of the producer: for its first batches in a partition, or if the topic was recreated
    since.
    """

    def __init__(self, library: ctypes.CDLL, client: int) -> None:
        self._library = library
        self._client = client
        self._served: defaultdict[str, set[int]] = defaultdict(set)
        self._ids: dict[str, tuple[int, int] | None] = {}

    def wait(self, topic: str, partitions: Collection[int], timeout_s: float) -> None:
        """Wait until leaders serve these partitions, or until the time is up."""
        deadline = Deadline.after(min(timeout_s, _MAX_WAIT_S))
        if topic not in self._ids:
            self._ids[topic] = self._topic_id(topic, deadline)
        deadline.poll(lambda: self._ask(topic, partitions, deadline), _PAUSE_S)

    def is_same(self, topic: str) -> bool:
        """Return whether a topic has the id of the first call of ``wait``.

        The answer is no if the id is unknown: brokers before Kafka 2.8 have no ids (KIP-516).
        """
        known = self._ids.get(topic)
        return known is not None and known == self._topic_id(topic, Deadline.after(_MAX_WAIT_S))

    def _topic_id(self, topic: str, deadline: Deadline) -> tuple[int, int] | None:
        """Return a topic's id, ``None`` if no broker returns one in time."""
        library = self._library
        names = (ctypes.c_char_p * 1)(topic.encode())
        topics = library.rd_kafka_TopicCollection_of_topic_names(names, 1)
        try:
            with self._answer(
                lambda queue: library.rd_kafka_DescribeTopics(self._client, topics, None, queue),
                deadline,
            ) as event:
                result = event and library.rd_kafka_event_DescribeTopics_result(event)
                return self._id_of(result) if result else None
        finally:
            library.rd_kafka_TopicCollection_destroy(topics)

    def _id_of(self, result: int) -> tuple[int, int] | None:
        library, count = self._library, ctypes.c_size_t()
        described = library.rd_kafka_DescribeTopics_result_topics(result, ctypes.byref(count))
        found = library.rd_kafka_TopicDescription_topic_id(described[0]) if count.value else None
        if not found:
            return None
        bits = (
            library.rd_kafka_Uuid_most_significant_bits(found),
            library.rd_kafka_Uuid_least_significant_bits(found),
        )
        return bits if any(bits) else None

    @contextmanager
    def _answer(self, ask: Callable[[int], None], deadline: Deadline) -> Iterator[int | None]:
        """Yield the event with the answer to a request, ``None`` if there is none in time."""
        library = self._library
        queue = library.rd_kafka_queue_new(self._client)
        ask(queue)
        event = None
        while not (event or deadline.has_passed):
            still_waiting()
            event = library.rd_kafka_queue_poll(queue, _SIGNALS_MS)
        try:
            yield event
        finally:
            if event:
                library.rd_kafka_event_destroy(event)
            library.rd_kafka_queue_destroy(queue)

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
        with (
            partition_list(library, topic, dict.fromkeys(partitions, LISTED_LATEST)) as wanted,
            self._answer(
                lambda queue: library.rd_kafka_ListOffsets(self._client, wanted, None, queue),
                deadline,
            ) as event,
        ):
            if event:
                yield from self._results(event)

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
