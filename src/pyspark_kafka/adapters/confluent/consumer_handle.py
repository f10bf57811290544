"""librdkafka's consumer without a group: a queue for each fetch from a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from ...domain.options.option import INT32_MAX
from ...domain.reading.leader_epochs import NO_EPOCH
from .gather_kernel import ConsumerCalls, destroy
from .handle import notify, stop_notifying
from .librdkafka import CONSUMER, Message, partition_list

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Mapping

    from ...domain.reading.record_limits import RecordLimits
    from ...domain.topic_partition import TopicPartition
    from ..kernels.arrays import UInt64Array
    from .cluster import Cluster

FORCED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    # An offset out of range is an error, never a silent reset.
    "auto.offset.reset": "error",
    # Reports the end of a partition whose last offsets have no visible record.
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    "check.crcs": "true",
}

TUNED: Final = {
    # librdkafka fetches while fewer messages are queued. A queued message costs half a kilobyte
    # of memory in addition to its bytes, and leaves the processor's cache: at 1,000,000 a read
    # takes twice the memory and the same time.
    "queued.min.messages": "20000",
    # By default a fetch pauses for a second whenever the queue is full: three to five times
    # slower.
    "fetch.queue.backoff.ms": "1",
    # The limit of the queue, in kilobytes.
    "queued.max.messages.kbytes": "16384",
    # Twice the default, for fewer responses to wait for. Four megabytes would be faster still, but
    # take 30 MB more if records are well compressed: a response is decompressed as a whole.
    "fetch.message.max.bytes": "2097152",
    # A fetch that waits at the end of the last range delays the fetch of the next one, by default
    # for half a second; all records of a range are already in the log.
    "fetch.wait.max.ms": "10",
}

_RESPONSE_OVERHEAD_BYTES: Final = 512
"""The bytes beyond ``fetch.max.bytes`` that librdkafka requires as room for a response."""

RACK: Final = "client.rack"
"""The setting by which a leader chooses the replica to name (KIP-392)."""

MAX_MESSAGES: Final = 2_048
"""The messages that are taken from a queue at once."""


def response_limit(limits: RecordLimits, fetch_max_bytes: int) -> dict[str, str]:
    """Return the setting that admits the responses with records of the allowed size.

    librdkafka refuses larger ones, and decompresses no batch of zstd to more bytes. The other
    codecs have no limit there.
    """
    limit = min(fetch_max_bytes + max(limits.max_bytes, _RESPONSE_OVERHEAD_BYTES), INT32_MAX)
    return {"receive.message.max.bytes": str(limit)}


@final
class FetchQueue:
    """The messages of one fetch; the queue and the messages have to be destroyed at its end."""

    def __init__(
        self, library: ctypes.CDLL, calls: ConsumerCalls, topic: int, partition: int, queue: int
    ) -> None:
        self._library = library
        self._calls = calls
        self._topic = topic
        self._partition = partition
        self._queue = queue
        self.messages: UInt64Array = np.zeros(MAX_MESSAGES, np.uint64)
        self.last_epoch = NO_EPOCH
        """The leader epoch of the last record that was taken."""

    def notify(self, file: int) -> None:
        """Write a byte to a file when the queue is no longer empty."""
        notify(self._library, self._queue, file)

    def take(self, timeout_s: float = 0.0) -> int:
        """Wait for messages, write their addresses to ``messages``, and return their number.

        Destroy the messages of the last call before.
        """
        # librdkafka waits until as many messages as asked for are there.
        count = self._take(MAX_MESSAGES, 0)
        if not count and timeout_s:
            count = self._take(1, round(timeout_s * 1_000))
        # librdkafka destroys outdated messages after it wrote their addresses
        # (rd_kafka_purge_outdated_messages): ``release`` must not destroy them again.
        self.messages[count:] = 0
        self._keep_epoch(count)
        return count

    def event(self, place: int) -> tuple[KafkaError, int]:
        """Return the error that a message carries, and its offset."""
        address = int(self.messages[place])
        message = Message.from_address(address)
        text = self._library.rd_kafka_message_errstr(address) or b""
        return KafkaError(message.err, text.decode(errors="replace")), message.offset

    def drop(self, place: int) -> None:
        """Destroy one message."""
        self._library.rd_kafka_message_destroy(int(self.messages[place]))
        self.messages[place] = 0

    def release(self) -> None:
        """Destroy the messages that were taken, and stop librdkafka from notifying a file."""
        stop_notifying(self._library, self._queue)
        destroy(self.messages, self._calls.addresses)

    def end(self) -> None:
        """End the fetch after ``release``: wait for librdkafka's main thread."""
        self._library.rd_kafka_consume_stop(self._topic, self._partition)
        self._library.rd_kafka_queue_destroy(self._queue)

    def _keep_epoch(self, count: int) -> None:
        # The last one is often the end of the partition, which has no epoch.
        for place in reversed(range(count)):
            message = int(self.messages[place])
            if not Message.from_address(message).err:
                self.last_epoch = self._library.rd_kafka_message_leader_epoch(message)
                return

    def _take(self, max_messages: int, timeout_ms: int) -> int:
        count: int = self._library.rd_kafka_consume_batch_queue(
            self._queue, timeout_ms, self.messages.ctypes.data, max_messages
        )
        return max(0, count)


@final
class ConsumerHandle:
    """A consumer handle of librdkafka's. It has no coordinator and commits nothing."""

    def __init__(self, cluster: Cluster, config: Mapping[str, str]) -> None:
        """Create the handle; no request is sent yet, but a first login.

        :raises PysparkKafkaError: as ``Cluster.new_handle``.
        """
        self._library = cluster.library
        self._errors = cluster.errors
        self._calls = ConsumerCalls(cluster.library)
        self.handle = cluster.new_handle(CONSUMER, config)

    @property
    def calls(self) -> UInt64Array:
        """The functions that kernels call."""
        return self._calls.addresses

    def start(
        self, partition: TopicPartition, offset: int, last_epoch: int = NO_EPOCH
    ) -> FetchQueue:
        """Start fetching from an offset on, and return a new queue for the messages.

        ``last_epoch`` is the leader epoch of the record before; its leader compares it with the
        log first. An earlier fetch of the partition has to be stopped before.

        :raises RuntimeError: if the handle is closed, or another process created it.
        """
        handle, library, number = self.handle, self._library, partition.partition
        try:
            topic = handle.topic(partition.topic)
        except KafkaException as error:
            raise self._errors.error(f"a fetch from {partition}", error.args[0]) from error
        queue = library.rd_kafka_queue_new(handle.client)
        if library.rd_kafka_consume_start_queue(topic, number, offset, queue):
            failure = KafkaError(library.rd_kafka_last_error())
            library.rd_kafka_queue_destroy(queue)
            raise self._errors.error(f"a fetch from {partition}", failure)
        if last_epoch != NO_EPOCH:
            self._seek(partition, offset, last_epoch)
        fetch = FetchQueue(library, self._calls, topic, number, queue)
        fetch.last_epoch = last_epoch
        handle.fetches.append(fetch)
        return fetch

    @property
    def is_open(self) -> bool:
        """Whether fetches can be started, and those that were started can be read."""
        return self.handle.is_open

    def stop(self, fetch: FetchQueue) -> None:
        """End a fetch, and drop what was fetched; do nothing if the handle is closed.

        The handle is closed if librdkafka does not end the fetch in time.
        """
        if self.is_open and fetch in self.handle.fetches:
            self.handle.end(fetch)

    def handle_events(self, read_line: Callable[[str], object] | None = None) -> None:
        """Handle errors and log lines; ``read_line`` gets the text of each line.

        :raises RuntimeError: if the handle is closed, or another process created it.
        :raises AuthenticationError: if a broker refuses the login: it was changed.
        :raises TlsError: if a TLS handshake fails.
        """
        self.take_events(read_line)
        self._errors.raise_refusal()

    def take_events(self, read_line: Callable[[str], object] | None = None) -> None:
        """Take events like ``handle_events``, whose next call raises their errors."""
        while self.handle.poll(0, read_line):
            pass

    def topic_error(self, name: str, timeout_s: float) -> KafkaError | None:
        """Return a broker's error for a topic that is fetched; ``None`` without one in time.

        A fetch from a topic whose metadata are refused reports nothing.
        """
        try:
            code = self.handle.topic_metadata(name, timeout_s).error
        except KafkaException:
            return None
        return KafkaError(code) if code else None

    def close(self) -> None:
        """Destroy the handle; a second call does nothing."""
        self.handle.close()

    def _seek(self, partition: TopicPartition, offset: int, last_epoch: int) -> None:
        """Fetch from an offset on once the leader has compared an epoch with its log.

        ``rd_kafka_consume_start_queue`` takes no epoch. Nothing that was fetched before is
        returned.
        """
        library, offsets = self._library, {partition.partition: offset}
        with partition_list(library, partition.topic, offsets, last_epoch) as wanted:
            error = library.rd_kafka_seek_partitions(self.handle.client, wanted, 0)
        if error:
            library.rd_kafka_error_destroy(error)
