"""Continuous reading and writing over kafka-python's connections, in one thread."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, final

from kafka import KafkaConsumer

from ...domain.reading.record_limits import OversizedRecords
from ...ports.clock import Deadline
from ...ports.continuous import PolledRecords, StreamClient
from ..fetching import Watermarks
from .cluster_metadata import ClusterMetadata
from .connections import receive_ready
from .offset_fetcher import KafkaPythonOffsetFetcher
from .record_reader import MAX_WAIT_MS, PARTITION_BYTES
from .settings import client_settings
from .stream_fetcher import StreamFetcher
from .stream_sinks import AtLeastOnceSink, NoSink, StreamSink
from .stream_transactions import ExactlyOnceSink
from .transports import MAX_FRAME_BYTES
from .wire import FetchSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.data_loss import DataLoss
    from ...domain.topic_partition import TopicPartition

_RESPONSE_BYTES: Final = 4_000_000
"""The default size of a response for all partitions of a broker: it fits into the buffer that is
reused."""


@final
class KafkaPythonStreamClient(StreamClient):
    """Waits for the responses to fetches and to what is written at the same time."""

    def __init__(
        self, source: SourceOptions, sink: SinkOptions | None, continuous: ContinuousSettings
    ) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        settings, self._errors = client_settings(dict(source.kafka))
        config = {
            **KafkaConsumer.DEFAULT_CONFIG,
            "max_partition_fetch_bytes": PARTITION_BYTES,
            "fetch_max_bytes": _RESPONSE_BYTES,
            **settings,
        }
        self._metadata = ClusterMetadata(config, self._errors)
        self._oversized = OversizedRecords(source.record_limits)
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
                max_batch_bytes=max(MAX_FRAME_BYTES, source.max_record_bytes),
            ),
            self._metadata,
            source.projection,
            Watermarks(partial(KafkaPythonOffsetFetcher, source), source),
            oversized=self._oversized,
        )
        self._sink = _sink(sink, continuous)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        begun = self._sink.assign(offsets)
        self._fetcher.assign(begun)
        return begun

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self._fetcher.revoke(partitions)
        self._sink.revoke(partitions)

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        deadline = Deadline.after(timeout_s)
        while True:
            with self._errors.mapped_errors("a fetch"):
                wait_s = min(self._fetcher.send(), self._sink.send(), deadline.remaining)
                has_fetched = takes_records and self._fetcher.has_fetched
                if has_fetched or self._sink.has_acknowledged:
                    wait_s = 0.0
                receive_ready([*self._fetcher.awaited(), *self._sink.awaited()], wait_s)
                polled = self._fetcher.take() if takes_records else []
            if polled or self._sink.has_acknowledged or deadline.has_passed:
                return polled

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._oversized.take_skipped()

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self._sink.write(polled, outputs)

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._sink.take_acknowledged()

    def is_settled(self) -> bool:
        return self._sink.is_settled

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._metadata.close)
            closing.callback(self._sink.close)
            closing.callback(self._fetcher.close)


def _sink(options: SinkOptions | None, continuous: ContinuousSettings) -> StreamSink:
    if options is None:
        return NoSink()
    if options.is_exactly_once:
        return ExactlyOnceSink(options, continuous)
    return AtLeastOnceSink(options)
