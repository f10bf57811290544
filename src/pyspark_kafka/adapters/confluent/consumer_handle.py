"""librdkafka's consumer without a group: a queue for each fetch from a partition."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np
from confluent_kafka import KafkaError

from ...domain.reading.leader_epochs import NO_EPOCH
from ..process_local import ProcessLocal
from .client_closing import close_in_time
from .client_handle import handle_event, new_client, notify, stop_notifying
from .gather_kernel import ConsumerCalls, destroy
from .librdkafka import CONSUMER, Message, Metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...domain.topic_partition import TopicPartition
    from ..kernels.arrays import UInt64Array
    from .connection import Connection

MAX_MESSAGES: Final = 2_048
"""The messages that are taken from a queue at once."""


@final
class FetchQueue:
    """The messages of one fetch; the queue and the messages have to be destroyed by ``stop``."""

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
        """Write a byte to a file when the queue is not empty any more."""
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
        # (rd_kafka_purge_outdated_messages): ``stop`` must not destroy them again.
        self.messages[count:] = 0
        if count:
            self._keep_epoch(int(self.messages[count - 1]))
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

    def stop(self) -> None:
        """End the fetch, and drop what was fetched; a second call does nothing."""
        if self._queue:
            self.release()
            self.end()

    def release(self) -> None:
        """Destroy the messages that were taken, and have librdkafka notify no file any more."""
        stop_notifying(self._library, self._queue)
        destroy(self.messages, self._calls.addresses)

    def end(self) -> None:
        """End the fetch after ``release``: wait for librdkafka's main thread."""
        self._library.rd_kafka_consume_stop(self._topic, self._partition)
        self._library.rd_kafka_queue_destroy(self._queue)
        self._queue = 0

    def _keep_epoch(self, message: int) -> None:
        if not Message.from_address(message).err:
            self.last_epoch = self._library.rd_kafka_message_leader_epoch(message)

    def _take(self, max_messages: int, timeout_ms: int) -> int:
        count: int = self._library.rd_kafka_consume_batch_queue(
            self._queue, timeout_ms, self.messages.ctypes.data, max_messages
        )
        return max(0, count)


@final
@dataclass(slots=True)
class _Handles:
    """librdkafka's objects that have to be destroyed."""

    library: ctypes.CDLL
    client: int
    main_queue: int
    connection: Connection
    """librdkafka's threads may call it until the client is destroyed."""

    topics: dict[str, int] = field(default_factory=dict)
    fetches: list[FetchQueue] = field(default_factory=list)

    def close(self) -> None:
        stop_notifying(self.library, self.main_queue)
        for fetch in self.fetches:
            fetch.release()
        close_in_time(self._destroy, is_collected=True)

    def _destroy(self) -> None:
        # The client last: librdkafka waits until nothing refers to it.
        for fetch in self.fetches:
            fetch.end()
        for topic in self.topics.values():
            self.library.rd_kafka_topic_destroy(topic)
        self.library.rd_kafka_queue_destroy(self.main_queue)
        self.library.rd_kafka_destroy(self.client)


@final
class ConsumerHandle:
    """A consumer handle of librdkafka's, for the process that creates it.

    It has no coordinator and commits nothing.
    """

    def __init__(
        self, library: ctypes.CDLL, connection: Connection, config: Mapping[str, str]
    ) -> None:
        """Create the handle; no request is sent yet, but a first login.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        :raises AuthenticationError: if a broker refuses the login.
        :raises TlsError: if the TLS handshake fails.
        """
        connection.require_login()
        self._library = library
        self._connection = connection
        self._calls = ConsumerCalls(library)
        client, main_queue = new_client(library, CONSUMER, connection, config)
        self._local = ProcessLocal(_Handles(library, client, main_queue, connection))
        self._name = library.rd_kafka_name(client).decode()
        weakref.finalize(self, _destroy, self._local).atexit = False

    @property
    def calls(self) -> UInt64Array:
        """The functions that kernels call."""
        return self._calls.addresses

    @property
    def is_open(self) -> bool:
        """Whether the handle is not closed, and belongs to this process."""
        return self._local.get() is not None

    def notify(self, file: int) -> None:
        """Write a byte to a file when there are events."""
        notify(self._library, self._handles.main_queue, file)

    def start(
        self, partition: TopicPartition, offset: int, last_epoch: int = NO_EPOCH
    ) -> FetchQueue:
        """Start to fetch from an offset on, and return a new queue for the messages.

        ``last_epoch`` is the leader epoch of the record before; its leader compares it with the
        log first. An earlier fetch of the partition has to be stopped before.

        :raises RuntimeError: if the handle is closed, or another process created it.
        """
        handles, library = self._handles, self._library
        topic = self._topic(handles, partition)
        queue = library.rd_kafka_queue_new(handles.client)
        if library.rd_kafka_consume_start_queue(topic, partition.partition, offset, queue):
            failure = self._failure(partition)
            library.rd_kafka_queue_destroy(queue)
            raise failure
        if last_epoch != NO_EPOCH:
            self._seek(handles, partition, offset, last_epoch)
        fetch = FetchQueue(library, self._calls, topic, partition.partition, queue)
        fetch.last_epoch = last_epoch
        handles.fetches.append(fetch)
        return fetch

    def stop(self, fetch: FetchQueue) -> None:
        """End a fetch; nothing is done if the handle is closed."""
        handles = self._local.get()
        if handles is not None and fetch in handles.fetches:
            handles.fetches.remove(fetch)
            fetch.stop()

    def leave_topic(self, name: str) -> None:
        """Forget a topic from which nothing is fetched any more."""
        topic = self._handles.topics.pop(name, None)
        if topic is not None:
            self._library.rd_kafka_topic_destroy(topic)

    def handle_events(self, read_line: Callable[[str], object] | None = None) -> None:
        """Handle errors and log lines; ``read_line`` gets the text of each line.

        :raises RuntimeError: if the handle is closed, or another process created it.
        :raises AuthenticationError: if a broker refuses the login: it was changed.
        :raises TlsError: if a TLS handshake fails.
        """
        self.take_events(read_line)
        self._connection.raise_refusal()

    def take_events(self, read_line: Callable[[str], object] | None = None) -> None:
        """Do as ``handle_events``, which raises what was taken here as well."""
        library, main_queue = self._library, self._handles.main_queue
        while event := library.rd_kafka_queue_poll(main_queue, 0):
            handle_event(library, event, self._name, self._connection, read_line)
            library.rd_kafka_event_destroy(event)

    def topic_error(self, name: str, timeout_s: float) -> KafkaError | None:
        """Return a broker's error for a topic that is fetched; ``None`` without one in time.

        A fetch from a topic whose metadata are refused reports nothing.
        """
        handles, library = self._handles, self._library
        response = ctypes.POINTER(Metadata)()
        milliseconds = round(timeout_s * 1_000)
        if library.rd_kafka_metadata(
            handles.client, 0, handles.topics[name], ctypes.byref(response), milliseconds
        ):
            return None
        code = response.contents.topics[0].err
        library.rd_kafka_metadata_destroy(response)
        return KafkaError(code) if code else None

    def reaches_broker(self, timeout_s: float) -> bool:
        """Return whether a broker answers in time."""
        library = self._library
        response = ctypes.POINTER(Metadata)()
        error = library.rd_kafka_metadata(
            self._handles.client, 0, None, ctypes.byref(response), round(timeout_s * 1_000)
        )
        if not error:
            library.rd_kafka_metadata_destroy(response)
        return not error

    def close(self) -> None:
        """Destroy the handle; a second call does nothing."""
        _destroy(self._local)

    @property
    def _handles(self) -> _Handles:
        handles = self._local.get()
        if handles is None:
            raise RuntimeError("the reader is closed, or belongs to another process")
        return handles

    def _seek(
        self, handles: _Handles, partition: TopicPartition, offset: int, last_epoch: int
    ) -> None:
        """Fetch from an offset on once the leader has compared an epoch with its log.

        ``rd_kafka_consume_start_queue`` takes no epoch. Nothing that it fetched before is returned.
        """
        library, name = self._library, partition.topic.encode()
        wanted = library.rd_kafka_topic_partition_list_new(1)
        each = library.rd_kafka_topic_partition_list_add(wanted, name, partition.partition)
        library.rd_kafka_topic_partition_list_set_offset(wanted, name, partition.partition, offset)
        library.rd_kafka_topic_partition_set_leader_epoch(each, last_epoch)
        error = library.rd_kafka_seek_partitions(handles.client, wanted, 0)
        if error:
            library.rd_kafka_error_destroy(error)
        library.rd_kafka_topic_partition_list_destroy(wanted)

    def _topic(self, handles: _Handles, partition: TopicPartition) -> int:
        if partition.topic not in handles.topics:
            name = partition.topic.encode()
            topic = self._library.rd_kafka_topic_new(handles.client, name, None)
            if not topic:
                raise self._failure(partition)
            handles.topics[partition.topic] = topic
        return handles.topics[partition.topic]

    def _failure(self, partition: TopicPartition) -> Exception:
        error = KafkaError(self._library.rd_kafka_last_error())
        return self._connection.error(f"a fetch from {partition}", error)


def _destroy(local: ProcessLocal[_Handles]) -> None:
    handles = local.pop()
    if handles is not None:
        handles.close()
