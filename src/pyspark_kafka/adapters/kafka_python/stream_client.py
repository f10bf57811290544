"""Continuous reading and writing over kafka-python's connections, in one thread."""

from __future__ import annotations

import select
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, final

from kafka import KafkaConsumer
from kafka import errors as kafka_errors

from ...domain.kafka_settings import api_timeout_ms
from ...ports.deadline import Deadline
from ...ports.stream_client import PolledRecords, StreamClient
from ..fetching import Watermarks
from .cluster_metadata import ClusterMetadata
from .failures import ErrorMapper
from .fetch_wire import FetchSettings
from .offset_fetcher import KafkaPythonOffsetFetcher
from .record_reader import MAX_WAIT_MS, PARTITION_BYTES
from .settings import client_config
from .stream_fetcher import MAX_BACKOFF_S, StreamFetcher
from .stream_sinks import AtLeastOnceSink, NoSink, StreamSink

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.options import SinkOptions, SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.topic_partition import TopicPartition
    from .connections import RawConnection

_RESPONSE_BYTES: Final = 4_000_000
"""The default size of a response for all partitions of a broker: it fits into the buffer that is
reused."""


@final
class KafkaPythonStreamClient(StreamClient):
    """Waits for the responses to fetches and to what is written at the same time."""

    def __init__(
        self, source: SourceOptions, sink: SinkOptions | None, _continuous: ContinuousSettings
    ) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        settings = dict(source.kafka)
        config = {
            **KafkaConsumer.DEFAULT_CONFIG,
            "max_partition_fetch_bytes": PARTITION_BYTES,
            "fetch_max_bytes": _RESPONSE_BYTES,
            # A longer pause would be one after the broker is back.
            "reconnect_backoff_max_ms": int(1_000 * MAX_BACKOFF_S),
            **client_config(settings),
        }
        self._errors = ErrorMapper(source.bootstrap_servers, api_timeout_ms(settings))
        self._metadata = ClusterMetadata(config, self._errors)
        self._fetcher = StreamFetcher(
            config,
            self._errors,
            FetchSettings(
                client_id=config["client_id"],
                rack="",
                isolation_level=int(source.reads_committed_only),
                min_bytes=config["fetch_min_bytes"],
                max_bytes=config["fetch_max_bytes"],
                partition_bytes=config["max_partition_fetch_bytes"],
                max_wait_ms=min(config["fetch_max_wait_ms"], MAX_WAIT_MS),
            ),
            self._metadata,
            source.projection,
            Watermarks(partial(KafkaPythonOffsetFetcher, source), source),
        )
        self._sink: StreamSink = NoSink() if sink is None else AtLeastOnceSink(sink)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        with self._mapped_errors():
            begun = self._sink.assign(offsets)
            self._fetcher.assign(begun)
            return begun

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self._fetcher.revoke(partitions)

    def poll(self, timeout_s: float) -> Sequence[PolledRecords]:
        deadline = Deadline.after(timeout_s)
        with self._mapped_errors():
            while True:
                wait_s = min(self._fetcher.send(), self._sink.send(), deadline.remaining)
                is_ready = self._fetcher.has_fetched or self._sink.has_acknowledged
                _receive(
                    [*self._fetcher.awaited(), *self._sink.awaited()], 0 if is_ready else wait_s
                )
                polled = self._fetcher.take()
                if polled or self._sink.has_acknowledged or deadline.has_passed:
                    return polled

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        with self._mapped_errors():
            self._sink.write(polled, outputs)

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._sink.take_acknowledged()

    def is_settled(self) -> bool:
        return self._sink.is_settled

    def close(self) -> None:
        self._fetcher.close()
        self._sink.close()
        self._metadata.close()

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        with self._errors.mapped_errors("a request of a continuous query"):
            try:
                yield
            except OSError as error:
                raise kafka_errors.KafkaConnectionError(str(error)) from error


def _receive(awaited: Iterable[tuple[RawConnection, Callable[[], None]]], timeout_s: float) -> None:
    """Wait until there are responses, or in time, and receive them.

    The connections change often, so that they are registered each time: that is a list, and no
    system call.
    """
    poll = select.poll()
    receivers: dict[int, Callable[[], None]] = {}
    for connection, receive in awaited:
        receivers[connection.fileno()] = receive
        poll.register(connection, select.POLLIN)
        if connection.has_decrypted:
            timeout_s = 0.0
    if not receivers:
        time.sleep(timeout_s)
        return
    ready = {number for number, _ in poll.poll(1_000 * timeout_s)}
    for connection, receive in awaited:
        if connection.fileno() in ready or connection.has_decrypted:
            receive()
