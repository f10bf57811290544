"""Continuous reading and writing over kafka-python's connections, in one thread."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, final

from ...ports.clock import Deadline
from ...ports.continuous import PolledRecords, StreamClient
from ..stream_sinks import NoSink
from .brokers import Brokers
from .connections import receive_ready
from .fetcher import Fetcher
from .stream_sinks import AtLeastOnceSink, ExactlyOnceSink

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.data_loss import DataLoss
    from ...domain.topic_partition import TopicPartition
    from ..stream_sinks import StreamSink

_RESPONSE_BYTES: Final = 4_000_000
"""The default size of a response for all partitions of a broker: it fits into the buffer that is
reused."""


@final
class KafkaPythonStreamClient(StreamClient):
    """Waits for responses to fetch and produce requests at the same time."""

    def __init__(
        self, source: SourceOptions, sink: SinkOptions | None, continuous: ContinuousSettings
    ) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        self._brokers = Brokers(source, fetch_max_bytes=_RESPONSE_BYTES)
        self._fetcher = Fetcher(self._brokers, is_continuous=True)
        self._projection = source.projection
        self._sink = _sink(sink, continuous)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        begun = self._sink.assign(offsets)
        self._fetcher.assign(
            [
                self._brokers.cursor(partition, self._projection, offset)
                for partition, offset in begun.items()
            ]
        )
        return begun

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self._fetcher.revoke(partitions)
        self._sink.revoke(partitions)

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        deadline = Deadline.after(timeout_s)
        self._fetcher.begin()
        while True:
            with self._brokers.errors.mapped_errors("a fetch"):
                wait_s = min(self._fetcher.send(), self._sink.send(), deadline.remaining)
                has_fetched = takes_records and self._fetcher.has_fetched
                if has_fetched or self._sink.has_acknowledged:
                    wait_s = 0.0
                receive_ready([*self._fetcher.awaited(), *self._sink.awaited()], wait_s)
                polled = self._fetcher.take() if takes_records else []
            if polled or self._sink.has_acknowledged or deadline.has_passed:
                return polled

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._brokers.oversized.take_skipped()

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self._sink.write(polled, outputs)

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._sink.take_acknowledged()

    def is_settled(self) -> bool:
        return self._sink.is_settled

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._brokers.close)
            closing.callback(self._sink.close)
            closing.callback(self._fetcher.close)


def _sink(options: SinkOptions | None, continuous: ContinuousSettings) -> StreamSink:
    if options is None:
        return NoSink()
    if options.is_exactly_once:
        return ExactlyOnceSink(options, continuous)
    return AtLeastOnceSink(options)
