"""The choice of each row's partition, and checks of rows."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

import numpy as np

from ...domain.text import excerpt
from ...domain.topic_partition import NAME_RULE, is_topic_name
from ...domain.writing.errors import InvalidRecordError, RecordTooLargeError
from ...ports.clock import Deadline, epoch_ms
from ..kafka_format.producer_columns import ProducerColumns
from .topic_rows import RowTopics, explicit_partitions, partitions_by_key, require_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from ...domain.options.client_settings import ProducerSettings
    from ..kernels.arrays import Int32Array, Int64Array

log = logging.getLogger(__name__)

MAX_REQUEST_SIZE: Final = "max.request.size"


class PartitionCounts(Protocol):
    """Asks a cluster how many partitions topics have."""

    def __call__(self, topics: Sequence[str], *, refresh: bool = False) -> Sequence[int]:
        """Return the number of each topic; ``refresh`` takes none that was known before.

        Waits for topics that are about to be created.

        :raises UnknownTopicError: if a topic does not exist.
        """


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartitionedColumns:
    """The columns of a batch, with the topic and the partition of each row."""

    columns: ProducerColumns
    topics: RowTopics
    partitions: Int32Array


@final
class RowPartitioner:
    """Chooses partitions as Kafka's Java producer does, and checks rows."""

    def __init__(
        self,
        producer: ProducerSettings,
        *,
        max_size: int | None = None,
        buffer_memory: int | None = None,
        setting: str = MAX_REQUEST_SIZE,
        needs_partition: bool = True,
    ) -> None:
        """Take the limits of a record; ``setting`` is the setting of ``max_size``.

        Without ``needs_partition``, rows that name no partition are left to the client.
        """
        self._producer = producer
        self._max_size = producer.max_request_size if max_size is None else max_size
        self._buffer_memory = buffer_memory
        self._setting = setting
        self._needs_partition = needs_partition
        self._sticky = StickyPartitions(producer.batch_size)

    def partition(
        self, batch: pa.RecordBatch, topic: str | None, ask: PartitionCounts
    ) -> PartitionedColumns:
        """Return the partition of each row; ``topic`` overrides the column. All rows are checked.

        :raises UnknownTopicError: if a topic does not exist.
        :raises NullTopicError: if a row has no topic.
        :raises InvalidRecordError: if a row cannot become a record.
        :raises RecordDeliveryError: if a partition does not exist, or a record is too large.
        """
        columns = ProducerColumns.of(batch, epoch_ms())
        topics = RowTopics.of(batch, topic)
        if topic is None:
            require_names(topics.names)
        partitions = self._partitions(batch, columns, topics, ask)
        require_sizes(
            columns,
            topics,
            partitions,
            max_size=self._max_size,
            buffer_memory=self._buffer_memory,
            setting=self._setting,
        )
        return PartitionedColumns(columns, topics, partitions)

    def add_bytes(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Count bytes that are written to topics."""
        self._sticky.add(sizes)

    def change_sticky_partitions(self) -> None:
        """Choose other partitions for rows without a key: the rows before were sent."""
        self._sticky.change()

    def _partitions(
        self,
        batch: pa.RecordBatch,
        columns: ProducerColumns,
        topics: RowTopics,
        ask: PartitionCounts,
    ) -> Int32Array:
        settings = self._producer
        counts: Int64Array = np.array(ask(topics.names), np.int64)
        chosen = explicit_partitions(batch, settings.partitioner, topics, counts)
        partitions, is_chosen = chosen
        if is_chosen.any():
            for code in np.unique(topics.codes[partitions >= counts[topics.codes]]).tolist():
                # The topic may have more partitions by now.
                [counts[code]] = ask([topics.names[code]], refresh=True)
        require_partitions(columns, topics, counts, chosen)
        if not self._needs_partition:
            return partitions
        sticky = self._sticky.choose(topics.names, counts)
        if settings.ignores_keys:
            return np.where(is_chosen, partitions, sticky[topics.codes].astype(np.int32))
        return partitions_by_key(columns, topics, counts, chosen, sticky)


def require_names(topics: Iterable[str]) -> None:
    """Check the names of topics: librdkafka would end one at its first NUL.

    :raises InvalidRecordError: if no topic can have a name.
    """
    for name in topics:
        if not is_topic_name(name):
            reason = f"no topic can have the name {excerpt(name)!r}: {NAME_RULE}"
            raise InvalidRecordError(reason, "Correct the column 'topic'.")


@final
class StickyPartitions:
    """Stays with a partition until a batch is full or sent, so that batches are few and large.

    Java's producer does so, too (KIP-480 and KIP-794).
    """

    def __init__(self, batch_size: int) -> None:
        """Begin with any partition; ``batch_size`` are the bytes after which it changes."""
        self._batch_size = batch_size
        self._turn = random.randrange(1 << 16)  # noqa: S311  # no secret
        self._changes: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def choose(self, topics: Sequence[str], counts: Int64Array) -> Int64Array:
        """Return the partition of each topic; ``counts`` are their numbers of partitions."""
        changes = np.array([self._changes.get(topic, 0) for topic in topics], np.int64)
        return (self._turn + changes) % counts

    def add(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Count bytes that were written to topics."""
        for topic, size in sizes:
            total = self._bytes.get(topic, 0) + size
            if total >= self._batch_size:
                self._changes[topic] = self._changes.get(topic, 0) + 1
                total = 0
            self._bytes[topic] = total

    def change(self) -> None:
        """Choose another partition for every topic: the batches before were sent."""
        self._turn += 1
        self._bytes.clear()


def require_sizes(
    columns: ProducerColumns,
    topics: RowTopics,
    partitions: Int32Array,
    *,
    max_size: int,
    buffer_memory: int | None = None,
    setting: str = MAX_REQUEST_SIZE,
) -> None:
    """Check rows as ``KafkaProducer.ensureValidRecordSize`` does; ``setting`` sets ``max_size``.

    :raises RecordTooLargeError: for the first row that is too large.
    """
    limit = max_size if buffer_memory is None else min(max_size, buffer_memory)
    oversized = columns.first_oversized(limit)
    if oversized is None:
        return
    row, size = oversized
    if size > max_size:
        larger_than = f"{max_size}, which is the value of the {setting}"
    else:
        larger_than = "the total memory buffer you have configured with the buffer.memory"
    partition = int(partitions[row])
    raise RecordTooLargeError(
        topics.names[topics.codes[row]],
        partition if partition >= 0 else None,
        columns.payload_bytes(np.array([row])),
        f"The message is {size} bytes when serialized which is larger than {larger_than} "
        "configuration.",
    )


@final
class TopicWait:
    """Waits for ``max.block.ms``, as Java's producer does, and logs once when half is over."""

    def __init__(self, topic: str, max_block_s: float) -> None:
        self._topic = topic
        self._max_block_s = max_block_s
        self._log_at = Deadline.after(max_block_s / 2)
        self.deadline = Deadline.after(max_block_s)

    def topic_unknown(self) -> None:
        """Note that brokers have answered that they do not know the topic."""
        if self._log_at.has_passed:
            self._log_at = Deadline.after(None)
            log.warning(
                "The brokers do not know the topic '%s'. A write waits %g s for it to be created "
                "(kafka.max.block.ms), and then fails",
                self._topic,
                self._max_block_s,
            )
