"""librdkafka's simple consumer: one partition at a time, from an offset on, in no group.

It has no coordinator and commits nothing. Changing the partition takes a third of the time of an
``assign()``.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from confluent_kafka import KafkaError

from ..process_local import ProcessLocal
from .client_handle import handle_event, new_client
from .gather_kernel import ConsumerCalls, destroy
from .librdkafka import CONSUMER, Message

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping

    from ...domain.topic_partition import TopicPartition
    from ..kernels.arrays import UInt64Array
    from .connection import Connection

MAX_MESSAGES: Final = 2_048
"""The messages that are taken from the queue at once."""


@final
@dataclass(slots=True)
class _Handles:
    """librdkafka's objects that have to be destroyed, and the messages that were taken."""

    library: ctypes.CDLL
    calls: ConsumerCalls
    messages: UInt64Array
    client: int
    main_queue: int
    topic: int = 0
    partition: int = -1
    queue: int = 0

    def stop(self) -> None:
        if self.queue:
            self.library.rd_kafka_consume_stop(self.topic, self.partition)
            destroy(self.messages, self.calls.addresses)
            self.library.rd_kafka_queue_destroy(self.queue)
            self.queue = 0

    def leave_topic(self) -> None:
        if self.topic:
            self.library.rd_kafka_topic_destroy(self.topic)
            self.topic = 0

    def destroy(self) -> None:
        # The client last: librdkafka waits until nothing refers to it.
        self.stop()
        self.leave_topic()
        self.library.rd_kafka_queue_destroy(self.main_queue)
        self.library.rd_kafka_destroy(self.client)


@final
class SimpleConsumer:
    """A consumer handle of librdkafka's, for the process that creates it."""

    def __init__(
        self, library: ctypes.CDLL, connection: Connection, config: Mapping[str, str]
    ) -> None:
        """Create the handle; no request is sent yet.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._library = library
        self._connection = connection
        self._calls = ConsumerCalls(library)
        self.messages: UInt64Array = np.zeros(MAX_MESSAGES, np.uint64)
        client, main_queue = new_client(library, CONSUMER, connection, config)
        self._local = ProcessLocal(
            _Handles(library, self._calls, self.messages, client, main_queue)
        )
        self._name = library.rd_kafka_name(client).decode()
        self._topic_name = ""
        self._reader: object = None
        weakref.finalize(self, _destroy, self._local).atexit = False

    @property
    def calls(self) -> UInt64Array:
        """The functions that kernels call."""
        return self._calls.addresses

    def serves(self, reader: object) -> bool:
        """Return whether this reader started the current fetch."""
        return self._reader is reader and self._local.get() is not None

    def start(self, reader: object, partition: TopicPartition, offset: int) -> None:
        """Start to fetch for a reader, and stop to fetch for another one.

        Messages come into a new queue, so that none of an earlier range can be in it.

        :raises RuntimeError: if the handle is closed, or another process created it.
        """
        handles, library = self._handles, self._library
        handles.stop()
        self._reader = reader
        self._set_topic(partition)
        queue = library.rd_kafka_queue_new(handles.client)
        if library.rd_kafka_consume_start_queue(handles.topic, partition.partition, offset, queue):
            failure = self._failure(f"a fetch from {partition}")
            library.rd_kafka_queue_destroy(queue)
            raise failure
        handles.partition, handles.queue = partition.partition, queue

    def stop(self, reader: object) -> None:
        """Stop fetching for a reader if it started the fetch, and drop what was fetched."""
        if self.serves(reader):
            self._reader = None
            self._handles.stop()
            self._handle_events()

    def poll(self, timeout_s: float) -> int:
        """Wait for messages, write their addresses to ``messages``, and return their number.

        Destroy those of the last poll before.
        """
        self._handle_events()
        # librdkafka waits until as many messages as asked for are there.
        return self._take(MAX_MESSAGES, 0) or self._take(1, round(timeout_s * 1_000))

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

    def close(self) -> None:
        """Destroy the handle; a second call does nothing."""
        _destroy(self._local)

    @property
    def _handles(self) -> _Handles:
        handles = self._local.get()
        if handles is None:
            raise RuntimeError("the reader is closed, or belongs to another process")
        return handles

    def _handle_events(self) -> None:
        library, main_queue = self._library, self._handles.main_queue
        while event := library.rd_kafka_queue_poll(main_queue, 0):
            handle_event(library, event, self._name, self._connection)
            library.rd_kafka_event_destroy(event)

    def _take(self, max_messages: int, timeout_ms: int) -> int:
        count: int = self._library.rd_kafka_consume_batch_queue(
            self._handles.queue, timeout_ms, self.messages.ctypes.data, max_messages
        )
        return max(0, count)

    def _set_topic(self, partition: TopicPartition) -> None:
        handles, library = self._handles, self._library
        if partition.topic == self._topic_name:
            return
        handles.leave_topic()
        self._topic_name = ""
        name = partition.topic.encode()
        handles.topic = library.rd_kafka_topic_new(handles.client, name, None) or 0
        if not handles.topic:
            raise self._failure(f"a fetch from {partition}")
        self._topic_name = partition.topic

    def _failure(self, request: str) -> Exception:
        return self._connection.error(request, KafkaError(self._library.rd_kafka_last_error()))


def _destroy(local: ProcessLocal[_Handles]) -> None:
    handles = local.pop()
    if handles is not None:
        handles.destroy()
