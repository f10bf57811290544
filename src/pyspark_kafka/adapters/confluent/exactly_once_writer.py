"""What a continuous query makes of its records, written with exactly-once delivery."""

from __future__ import annotations

import math
import os
import selectors
import threading
import weakref
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import BrokerUnreachableError
from ...domain.options.settings_table import ISOLATION_LEVEL, READ_COMMITTED
from ...ports.clock import Deadline
from ..stream_sinks import TransactionalSink
from .offset_fetcher import ConfluentOffsetFetcher
from .producer_config import FORCED
from .transactions import PartitionTransactions, PendingOutputs, TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from threading import Event

    import pyarrow as pa

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.options.source import SourceOptions
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import PolledRecords
    from .partitioned_rows import PartitionedRows
    from .producer_handle import ProducerHandle
    from .stream_writer import SinkProducers

_READ: Final = 4_096


def _close(selector: selectors.BaseSelector, *ends: int) -> None:
    selector.close()
    for end in ends:
        os.close(end)


@final
class WakePipe:
    """Waits until a byte is written to ``file``; one thread waits, and any may write."""

    def __init__(self) -> None:
        self._source, self.file = os.pipe()
        for end in (self._source, self.file):
            # librdkafka ignores that a pipe is full: a byte in it is enough.
            os.set_blocking(end, False)  # type: ignore[attr-defined,unused-ignore]  # on win32
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._source, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, _close, self._selector, self._source, self.file)
        self._close.atexit = False

    def wait(self, timeout_s: float) -> None:
        """Return when something was written since the last call, or in time."""
        if self._selector.select(timeout_s):
            with suppress(BlockingIOError):
                os.read(self._source, _READ)

    def set(self) -> None:
        """End the current wait, or else the next one; do nothing once the pipe is closed."""
        # Another file may have got its number since.
        with self._lock, suppress(BlockingIOError):
            if self._close.alive:
                os.write(self.file, b".")

    def close(self) -> None:
        """Close both ends; librdkafka may not write any more. A second call does nothing."""
        with self._lock:
            self._close()


_CLOSE_S: Final = 0.5
"""How long a closed client waits for a call of librdkafka's, which ends its thread later."""


@final
class ExactlyOnceSink(TransactionalSink[PartitionTransactions]):
    """Commits outputs with the offsets of their input, in a thread for each partition."""

    def __init__(
        self,
        producers: SinkProducers,
        source: SourceOptions,
        settings: ContinuousSettings,
        wake: Callable[[], None],
    ) -> None:
        """Connect to nothing yet; ``wake`` is called after each commit."""
        super().__init__(settings)
        self._producers = producers
        self._wake = wake
        # The group is one of the sink's cluster. Its offsets are from ended transactions.
        kafka = {**dict(producers.options.kafka), ISOLATION_LEVEL: READ_COMMITTED}
        self._group = ConfluentOffsetFetcher(replace(source, kafka=tuple(kafka.items())))
        self._metadata: ProducerHandle | None = None
        weakref.finalize(self, _close_all, self._writers).atexit = False

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        parts: list[PartitionedRows] = []
        if outputs:
            parts = self._producers.partitioned(self._connected(), outputs)
        size = sum(part.payload_bytes for part in parts)
        transactions = self._track(polled)
        if transactions is not None:
            transactions.add(PendingOutputs(parts, polled.next_offset, size))

    def send(self) -> float:
        if self._metadata is not None:
            self._metadata.wait(0)
        self._take_committed()
        return math.inf

    def renew(self) -> None:
        if not self._producers.cluster.settings.is_outdated:
            return
        self._close_metadata()
        kept = self._writers.keys() - self._revoked
        self._await_end(kept)
        # What was committed last has to be taken before its producers are forgotten.
        self.send()
        self._fence(kept)

    def close(self) -> None:
        everything = list(self._writers.values())
        self._close_writers(list(self._writers))
        deadline = Deadline.after(_CLOSE_S)
        for transactions in everything:
            transactions.join(deadline.remaining)
        with ExitStack() as closing:
            closing.callback(self._group.close)
            closing.callback(self._close_metadata)

    def _connected(self) -> ProducerHandle:
        """Return the producer that asks for metadata, created at first use."""
        if self._metadata is None:
            self._metadata = self._producers.create(FORCED, {})
        return self._metadata

    def _close_metadata(self) -> None:
        metadata, self._metadata = self._metadata, None
        if metadata is not None:
            metadata.close()

    def _await_end(self, partitions: Collection[TopicPartition]) -> None:
        for partition in self._writers.keys() & partitions:
            self._writers[partition].await_end()

    def _begin(
        self, partitions: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        # The first record must not wait for connections.
        self._connected()
        self._fence(partitions)
        return self._group.committed(self._settings.group_id, new) if new else {}

    def _fence(self, partitions: Collection[TopicPartition]) -> None:
        """Begin new transactions of partitions, all at the same time."""
        for partition in partitions:
            self._writers[partition] = PartitionTransactions(
                partition,
                partial(self._producer, partition),
                self._wake,
                self._producers.options.producer.buffer_memory,
                self._producers.cluster.settings.timeout_s,
                partial(self._overdue, partition),
            )
        for partition in partitions:
            self._writers[partition].await_fenced()

    def _overdue(self, partition: TopicPartition) -> BrokerUnreachableError:
        settings = self._producers.cluster.settings
        reason = f"the transaction of {partition} waits for its coordinator"
        return BrokerUnreachableError(settings.bootstrap_servers, settings.timeout_s, reason)

    def _producer(self, partition: TopicPartition, stopped: Event) -> TransactionalProducer:
        name = self._settings.transactional_id(partition.topic, partition.partition)
        producer = self._producers.create_transactional(name)
        return TransactionalProducer(
            producer,
            self._producers.cluster,
            group_id=self._settings.group_id,
            transactional_id=name,
            stopped=stopped,
        )


def _close_all(writers: Mapping[TopicPartition, PartitionTransactions]) -> None:
    for transactions in writers.values():
        transactions.close()
