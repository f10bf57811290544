"""librdkafka's simple consumer: one partition at a time, from an offset on, in no group.

It knows no coordinator and commits nothing, and goes from one partition to another in a third of
the time that an ``assign()`` takes.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from confluent_kafka import KafkaError

from .client_handle import log_event, new_client
from .gather_kernel import Calls, destroy
from .librdkafka import CONSUMER, EVENT_ERROR, EVENT_LOG, Message

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping

    from ...domain.topic_partition import TopicPartition
    from .connection import Connection

    Addresses: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

MAX_MESSAGES: Final = 2_048
"""The messages that are taken out of the queue at once."""


@final
@dataclass(slots=True)
class _Handles:
    """What of librdkafka's is to be given back, and the messages that were taken."""

    library: ctypes.CDLL
    calls: Calls
    messages: Addresses
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

    def release(self, process: int) -> None:
        # librdkafka's threads do not survive a fork: in a child the handle belongs to nobody.
        if os.getpid() == process:
            # Everything else first: librdkafka waits for what still refers to a client.
            self.stop()
            self.leave_topic()
            self.library.rd_kafka_queue_destroy(self.main_queue)
            self.library.rd_kafka_destroy(self.client)


@final
class SimpleConsumer:
    """A handle of librdkafka's, for the process that makes it."""

    def __init__(
        self, library: ctypes.CDLL, connection: Connection, config: Mapping[str, str]
    ) -> None:
        """Make the handle; nothing is asked of a broker yet.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._library = library
        self._connection = connection
        self._calls = Calls(library)
        self.messages: Addresses = np.zeros(MAX_MESSAGES, np.uint64)
        client, main_queue = new_client(library, CONSUMER, connection, config)
        self._handles = _Handles(library, self._calls, self.messages, client, main_queue)
        self._name = library.rd_kafka_name(client).decode()
        self._topic_name = ""
        self._served: object = None
        self._process = os.getpid()
        self._release = weakref.finalize(self, self._handles.release, self._process)
        self._release.atexit = False

    @property
    def calls(self) -> Addresses:
        """The functions that kernels call."""
        return self._calls.addresses

    @property
    def is_usable(self) -> bool:
        """Whether it is open, and this the process that made it."""
        return self._release.alive and self._process == os.getpid()

    def serves(self, reader: object) -> bool:
        """Say whether what is fetched is what this reader has started."""
        return self._served is reader and self.is_usable

    def start(self, reader: object, partition: TopicPartition, offset: int) -> None:
        """Begin to fetch, for one reader instead of another.

        It comes into a queue of its own, so that nothing of an earlier range can be in it.
        """
        if not self.is_usable:
            raise RuntimeError("the reader is closed, or belongs to another process")
        self._handles.stop()
        self._served = reader
        handles, library = self._handles, self._library
        self._turn_to(partition)
        queue = library.rd_kafka_queue_new(handles.client)
        if library.rd_kafka_consume_start_queue(handles.topic, partition.partition, offset, queue):
            failure = self._failure(f"a fetch from {partition}")
            library.rd_kafka_queue_destroy(queue)
            raise failure
        handles.partition, handles.queue = partition.partition, queue

    def stop(self, reader: object) -> None:
        """Stop fetching for a reader, if it is still the one, and drop what was fetched."""
        if self.serves(reader):
            self._served = None
            self._handles.stop()
            self.heed()

    def poll(self, timeout_s: float) -> int:
        """Wait for messages, put their addresses into ``messages``, and say how many they are.

        Those of the last poll are to be destroyed before.
        """
        self.heed()
        # A wait for several messages lasts until all of them are there.
        return self._take(MAX_MESSAGES, 0) or self._take(1, round(timeout_s * 1_000))

    def event(self, place: int) -> tuple[KafkaError, int]:
        """Give the error that stands for a message, and the offset that it is about."""
        address = int(self.messages[place])
        message = Message.from_address(address)
        text = self._library.rd_kafka_message_errstr(address) or b""
        return KafkaError(message.err, text.decode(errors="replace")), message.offset

    def drop(self, place: int) -> None:
        """Destroy one message."""
        self._library.rd_kafka_message_destroy(int(self.messages[place]))
        self.messages[place] = 0

    def heed(self) -> None:
        """Hand librdkafka's lines to the logger, and keep its last error."""
        library = self._library
        while event := library.rd_kafka_queue_poll(self._handles.main_queue, 0):
            kind = library.rd_kafka_event_type(event)
            if kind == EVENT_LOG:
                log_event(library, event, self._name)
            elif kind == EVENT_ERROR:
                text = library.rd_kafka_event_error_string(event).decode(errors="replace")
                self._connection.remember(KafkaError(library.rd_kafka_event_error(event), text))
            library.rd_kafka_event_destroy(event)

    def close(self) -> None:
        """Give everything back; a second call does nothing."""
        self._release()

    def _take(self, most: int, timeout_ms: int) -> int:
        taken: int = self._library.rd_kafka_consume_batch_queue(
            self._handles.queue, timeout_ms, self.messages.ctypes.data, most
        )
        return max(0, taken)

    def _turn_to(self, partition: TopicPartition) -> None:
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
