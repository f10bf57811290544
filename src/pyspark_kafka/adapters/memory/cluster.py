"""A Kafka cluster in memory."""

from __future__ import annotations

import itertools
import math
import threading
import zlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, final

from ...domain.errors import KafkaRequestError, UnknownTopicError
from ...domain.reading.errors import CorruptBatchError
from ...domain.topic_partition import TopicPartition
from ...domain.writing.errors import (
    InvalidTimestampError,
    ProducerFencedError,
    RecordTooLargeError,
    RejectedRecordError,
    TransactionLostError,
)
from ...domain.writing.group_seal import GroupOffset
from ...domain.writing.transaction import Transaction, TransactionDescription, TransactionState
from ...ports.clock import epoch_ms

ADDRESS = "memory"

TRANSACTION_TIMEOUT_MS: Final = 900_000
"""The default of ``transaction.timeout.ms`` in this package."""

T = TypeVar("T")


@final
@dataclass(slots=True)
class _TransactionalId:
    """The newest producer of an id, and its last transaction."""

    transaction: Transaction
    number: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    started_ms: int = -1

    @property
    def is_open(self) -> bool:
        """Whether it may be written to."""
        return self.state in (TransactionState.EMPTY, TransactionState.ONGOING)

    def describe(self) -> TransactionDescription:
        """Return a coordinator's description of it."""
        newest = self.transaction
        return TransactionDescription(
            newest.producer_id, newest.epoch, self.state, self.started_ms, self.timeout_ms
        )


@final
@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The limits of a topic: a record's bytes, its age in milliseconds, and whether it needs a key.

    Kafka's ``max.message.bytes``, ``message.timestamp.before.max.ms``, ``cleanup.policy=compact``.
    """

    max_bytes: float = math.inf
    max_age_ms: float = math.inf
    needs_key: bool = False

    def check(
        self, partition: TopicPartition, key: bytes | None, size: int, *, age_ms: int
    ) -> None:
        """Check a record.

        :raises RecordDeliveryError: of the kind with which brokers refuse it.
        """
        refused = (partition.topic, partition.partition, size)
        if self.needs_key and key is None:
            raise RejectedRecordError(*refused, "the topic is compacted, and it has no key")
        if size > self.max_bytes:
            raise RecordTooLargeError(*refused, f"the topic takes {self.max_bytes:.0f} bytes")
        if age_ms > self.max_age_ms:
            raise InvalidTimestampError(*refused, f"it is {age_ms} ms old")


@final
@dataclass(frozen=True, slots=True)
class _Topic:
    """The partitions of a topic; ``topic_id`` distinguishes it from an earlier one of its name."""

    topic_id: int
    timestamp_type: int
    limits: TopicLimits
    logs: list[PartitionLog] = field(default_factory=list)


@final
class MemoryCluster:
    """Topics, records, transactions and group offsets, kept by this object.

    Thread-safe: every method is atomic.
    """

    def __init__(self, now_ms: Callable[[], int] = epoch_ms) -> None:
        """Begin without a topic; ``now_ms`` is the brokers' clock, since the epoch."""
        self._now_ms = now_ms
        # A condition's lock is reentrant.
        self._lock = threading.Condition()
        self._topic_ids = itertools.count(1)
        self._topics: dict[str, _Topic] = {}
        self._groups: dict[str, dict[TopicPartition, GroupOffset]] = {}
        self._transactions = itertools.count(1)
        self._transactional_ids: dict[str, _TransactionalId] = {}

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        has_append_time: bool = False,
        limits: TopicLimits = TopicLimits(),
    ) -> None:
        """Create a topic; with append time, records get the time at which they are appended.

        :raises KafkaRequestError: if it exists.
        """
        with self._changing():
            if topic in self._topics:
                raise KafkaRequestError("a request to create a topic", f"'{topic}' exists already")
            self._topics[topic] = _Topic(
                next(self._topic_ids), APPEND_TIME if has_append_time else CREATE_TIME, limits
            )
            self.add_partitions(topic, partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        """Add partitions to a topic, up to ``total``."""
        with self._changing():
            logs = self._logs(topic)
            logs.extend(PartitionLog() for _ in range(total - len(logs)))

    def delete_topic(self, topic: str) -> None:
        """Delete a topic and its records; group offsets stay, as in Kafka."""
        with self._changing():
            self._logs(topic)
            del self._topics[topic]

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before an offset, as retention does."""
        with self._changing():
            for partition, offset in before.items():
                self._log(partition).delete_before(offset)

    def corrupt(self, partition: TopicPartition, offset: int) -> None:
        """Damage a record, which then cannot be read."""
        with self._lock:
            self._log(partition).corrupt(offset)

    def compact(self, partition: TopicPartition) -> None:
        """Keep only the newest committed record of each key, up to the first open transaction."""
        with self._lock:
            self._log(partition).compact()

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = 0,
        headers: Headers = (),
        timestamp: int | None = None,
        transaction: int | None = None,
    ) -> int:
        """Append a record and return its offset; ``timestamp`` in milliseconds, by default now.

        :raises RecordDeliveryError: if the topic's limits refuse it.
        """
        with self._changing():
            number = TopicPartition(topic, partition)
            log, found, now_ms = self._log(number), self._topics[topic], self._now_ms()
            if timestamp is None or found.timestamp_type == APPEND_TIME:
                timestamp = now_ms
            size = _size(key) + _size(value) + sum(len(k) + _size(v) for k, v in headers)
            found.limits.check(number, key, size, age_ms=now_ms - timestamp)
            return log.append(key, value, headers, timestamp, found.timestamp_type, transaction)

    def begin_transaction(self) -> int:
        """Begin a transaction, and return its number for ``produce``."""
        return next(self._transactions)

    def end_transaction(self, transaction: int, *, commit: bool) -> None:
        """Commit or abort a transaction in all of its partitions."""
        with self._changing():
            for topic in self._topics.values():
                for log in topic.logs:
                    log.end_transaction(transaction, commit=commit)

    def open_transaction(
        self, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS
    ) -> Transaction:
        """Begin a transaction under a transactional id; fence the one before it.

        As in Kafka, the epoch is raised by one more if that one has to be aborted.
        """
        with self._changing():
            before = self._transactional_ids.get(transactional_id)
            epoch = 0
            if before is not None:
                is_ongoing = before.state is TransactionState.ONGOING
                self.end_transaction(before.number, commit=False)
                epoch = before.transaction.epoch + (2 if is_ongoing else 1)
            opened = Transaction(transactional_id, zlib.crc32(transactional_id.encode()), epoch)
            self._transactional_ids[transactional_id] = _TransactionalId(
                opened, self.begin_transaction(), timeout_ms
            )
            return opened

    def find_transactions(
        self, prefix: str, state: TransactionState
    ) -> dict[str, TransactionDescription]:
        """Describe the transactional ids with a prefix that are in a state."""
        with self._lock:
            described = {
                transactional_id: newest.describe()
                for transactional_id, newest in self._transactional_ids.items()
                if transactional_id.startswith(prefix)
            }
        return {name: each for name, each in described.items() if each.state is state}

    def describe_transaction(self, transactional_id: str) -> TransactionDescription | None:
        """Return the state of a transactional id, ``None`` if it is not known."""
        with self._lock:
            found = self._transactional_ids.get(transactional_id)
            return found and found.describe()

    def abort_expired(self) -> list[str]:
        """Abort the transactions that are older than their time-out, and return their ids.

        Coordinators look for them every 10 seconds; in memory, only this method does.
        """
        with self._changing():
            now_ms = self._now_ms()
            expired = [
                name
                for name, newest in self._transactional_ids.items()
                if newest.state is TransactionState.ONGOING
                and now_ms - newest.started_ms > newest.timeout_ms
            ]
            for name in expired:
                newest = self._transactional_ids[name]
                self.end_transaction(newest.number, commit=False)
                newest.state = TransactionState.COMPLETE_ABORT
                newest.transaction = replace(newest.transaction, epoch=newest.transaction.epoch + 1)
            return expired

    def forget_transactional_id(self, transactional_id: str) -> None:
        """Forget an id, as coordinators do after ``transactional.id.expiration.ms``."""
        with self._lock:
            self._transactional_ids.pop(transactional_id, None)

    def number_of(self, transaction: Transaction) -> int:
        """Return the number of an open transaction, for ``produce``.

        :raises ProducerFencedError: if it is not the newest of its id, or has ended.
        """
        with self._lock:
            found = self._transactional_ids.get(transaction.transactional_id)
            if found is None or found.transaction != transaction or not found.is_open:
                raise ProducerFencedError(transaction.transactional_id)
            if found.state is TransactionState.EMPTY:
                found.state, found.started_ms = TransactionState.ONGOING, self._now_ms()
            return found.number

    def close_transaction(self, transaction: Transaction, *, commit: bool) -> None:
        """Commit or abort a transaction; repeating it has no effect.

        :raises TransactionLostError: on a commit of a transaction that was aborted, with
            ``may_be_committed`` if its id is not known.
        """
        with self._changing():
            name = transaction.transactional_id
            found = self._transactional_ids.get(name)
            if found is None or found.transaction != transaction or not found.is_open:
                is_committed = (
                    found is not None
                    and found.transaction == transaction
                    and found.state is TransactionState.COMPLETE_COMMIT
                )
                if commit and not is_committed:
                    raise TransactionLostError(
                        [name], "it was aborted", "Write it again.", may_be_committed=found is None
                    )
                return
            self.end_transaction(found.number, commit=commit)
            found.state = (
                TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
            )

    def commit_and_begin(
        self,
        transaction: Transaction,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        metadata: str = "",
    ) -> None:
        """Commit a transaction with a group's offsets, and begin its producer's next one.

        The next one is the same value, as a producer's epoch stays the same in Kafka.

        :raises ProducerFencedError: if it is not the newest of its id, or has ended.
        """
        with self._changing():
            self.end_transaction(self.number_of(transaction), commit=True)
            self.commit(group_id, offsets, metadata)
            newest = self._transactional_ids[transaction.transactional_id]
            newest.number, newest.state = self.begin_transaction(), TransactionState.EMPTY

    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions of each topic."""
        with self._lock:
            return {name: len(topic.logs) for name, topic in self._topics.items()}

    def topic_id(self, topic: str) -> int | None:
        """Return the id of a topic, which no other topic of the name ever has, or ``None``."""
        with self._lock:
            found = self._topics.get(topic)
            return found and found.topic_id

    def watermarks(
        self, partition: TopicPartition, *, committed_only: bool
    ) -> tuple[int, int] | None:
        """Return a partition's earliest and latest offsets; ``None`` if it does not exist."""
        with self._lock:
            if partition.partition >= self.topics().get(partition.topic, 0):
                return None
            log = self._log(partition)
            return log.start, log.last_stable_offset if committed_only else log.end

    def offset_for_timestamp(
        self, partition: TopicPartition, timestamp: int, *, committed_only: bool = False
    ) -> int | None:
        """Return the first offset with a record at or after ``timestamp``.

        With ``committed_only``, it is before the first open transaction.
        """
        with self._lock:
            log = self._log(partition)
            return log.offset_for_timestamp(
                timestamp, log.last_stable_offset if committed_only else log.end
            )

    def fetch(
        self,
        partition: TopicPartition,
        start: int,
        end: int,
        *,
        committed_only: bool,
        max_records: int,
    ) -> list[StoredRecord]:
        """Return up to ``max_records`` visible records of ``[start, end)``.

        With ``committed_only``, they are before the first open transaction.

        :raises CorruptBatchError: if the first of them is corrupt.
        """
        with self._lock:
            log = self._log(partition)
            stable_end = min(end, log.last_stable_offset) if committed_only else end
            visible = log.visible(start, stable_end, committed_only=committed_only)
            records = list(itertools.islice(visible, max_records))
        if records and records[0].is_corrupt:
            raise CorruptBatchError(partition, records[0].offset, "its checksum is wrong")
        return list(itertools.takewhile(lambda record: not record.is_corrupt, records))

    def committed(self, group_id: str) -> Mapping[TopicPartition, int]:
        """Return the offsets that a group has committed."""
        with self._lock:
            found = self._groups.get(group_id, {})
            return {partition: each.offset for partition, each in found.items()}

    def group_offsets(self, group_id: str) -> Mapping[TopicPartition, GroupOffset]:
        """Return the offsets that a group has committed, with their texts."""
        with self._lock:
            return dict(self._groups.get(group_id, {}))

    def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, int], metadata: str = ""
    ) -> None:
        """Commit offsets for a group, with a text."""
        with self._lock:
            added = {each: GroupOffset(offset, metadata) for each, offset in offsets.items()}
            self._groups.setdefault(group_id, {}).update(added)

    def wait_for(self, ask: Callable[[], T], timeout_s: float) -> T:
        """Return the first true result of ``ask``, or its last one when the time is up.

        ``ask`` is called again at each change of topics and records. Each call is atomic.
        """
        with self._lock:
            return self._lock.wait_for(ask, timeout_s)

    def require(self, topics: Collection[str], option: str) -> None:
        """Check that topics exist.

        :raises UnknownTopicError: with the names of those that do not.
        """
        missing = [topic for topic in topics if topic not in self.topics()]
        if missing:
            raise UnknownTopicError(missing, option, ADDRESS)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            yield
            self._lock.notify_all()

    def _logs(self, topic: str) -> list[PartitionLog]:
        self.require([topic], "topic")
        return self._topics[topic].logs

    def _log(self, partition: TopicPartition) -> PartitionLog:
        logs = self._logs(partition.topic)
        if partition.partition >= len(logs):
            raise KafkaRequestError("a request for a partition", f"{partition} does not exist")
        return logs[partition.partition]


def _size(content: bytes | None) -> int:
    return len(content or b"")


Headers = tuple[tuple[str, bytes | None], ...]

CREATE_TIME: Final = 0
APPEND_TIME: Final = 1


@final
@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record in the log; ``timestamp`` is in milliseconds since the epoch.

    A record that ``is_corrupt`` cannot be read, and stands for a batch with a wrong checksum.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    timestamp_type: int
    transaction: int | None = None
    is_corrupt: bool = False


@final
@dataclass(slots=True)
class PartitionLog:
    """Records by offset, with their transactions. Not thread-safe."""

    records: list[StoredRecord] = field(default_factory=list)
    start: int = 0
    end: int = 0
    open_transactions: dict[int, int] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)

    @property
    def last_stable_offset(self) -> int:
        """The end under ``read_committed``: the start of the first open transaction."""
        return min(self.open_transactions.values(), default=self.end)

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        timestamp_type: int,
        transaction: int | None,
    ) -> int:
        """Append a record and return its offset."""
        offset = self.end
        if transaction is not None:
            self.open_transactions.setdefault(transaction, offset)
        self.records.append(
            StoredRecord(offset, key, value, headers, timestamp, timestamp_type, transaction)
        )
        self.end += 1
        return offset

    def end_transaction(self, transaction: int, *, commit: bool) -> None:
        """Write a control record, which takes an offset and is never read."""
        if self.open_transactions.pop(transaction, None) is None:
            return
        if not commit:
            self.aborted.add(transaction)
        self.end += 1

    def delete_before(self, offset: int) -> None:
        """Delete the records before ``offset``, as retention and ``DeleteRecords`` do."""
        self.start = max(self.start, min(offset, self.end))
        del self.records[: bisect_left(self.records, self.start, key=lambda record: record.offset)]

    def corrupt(self, offset: int) -> None:
        """Damage the record at an offset."""
        self.records = [
            replace(record, is_corrupt=True) if record.offset == offset else record
            for record in self.records
        ]

    def compact(self) -> None:
        """Keep the newest record of each key, as the log cleaner does; offsets stay.

        Records of aborted transactions go. From the last stable offset on, nothing is cleaned.
        """
        stable = bisect_left(
            self.records, self.last_stable_offset, key=lambda record: record.offset
        )
        kept = [each for each in self.records[:stable] if each.transaction not in self.aborted]
        newest = {record.key: record.offset for record in kept}
        self.records[:stable] = [
            record for record in kept if record.key is None or newest[record.key] == record.offset
        ]

    def visible(self, start: int, end: int, *, committed_only: bool) -> Iterator[StoredRecord]:
        """Yield the visible records of ``[start, end)``."""
        first = bisect_left(self.records, start, key=lambda record: record.offset)
        for record in self.records[first:]:
            if record.offset >= end:
                return
            if not (committed_only and record.transaction in self.aborted):
                yield record

    def offset_for_timestamp(self, timestamp: int, end: int) -> int | None:
        """Return the first offset before ``end`` with a record at or after ``timestamp``."""
        found = (record.offset for record in self.records if record.timestamp >= timestamp)
        return next((offset for offset in found if offset < end), None)
