"""Reading and writing of continuous queries through librdkafka's C API."""

from __future__ import annotations

import os
import selectors
import weakref
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import UnsupportedFeatureError
from ...ports.clock import Deadline
from ...ports.continuous import StreamClient
from ..stream_sinks import NoSink
from .stream_fetcher import StreamFetcher
from .stream_sinks import AtLeastOnceSink

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.data_loss import DataLoss
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import PolledRecords

RENEWAL_S: Final = 1.0
"""How often to look whether certificates or keys were replaced."""

_READ: Final = 4_096


def _close(selector: selectors.BaseSelector, *ends: int) -> None:
    selector.close()
    for end in ends:
        os.close(end)


@final
class WakePipe:
    """Waits until librdkafka writes a byte to ``file``."""

    def __init__(self) -> None:
        self._source, self.file = os.pipe()
        for end in (self._source, self.file):
            # librdkafka ignores that a pipe is full: a byte in it is enough.
            os.set_blocking(end, False)  # type: ignore[attr-defined,unused-ignore]  # on win32
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._source, selectors.EVENT_READ)
        self._close = weakref.finalize(self, _close, self._selector, self._source, self.file)
        self._close.atexit = False

    def wait(self, timeout_s: float) -> None:
        """Return when something was written since the last call, or in time."""
        if self._selector.select(timeout_s):
            with suppress(BlockingIOError):
                os.read(self._source, _READ)

    def close(self) -> None:
        """Close both ends once librdkafka no longer writes. A second call does nothing."""
        self._close()


@final
class ConfluentStreamClient(StreamClient):
    """One consumer for all partitions; its queues and the producers' queues end one wait."""

    def __init__(self, source: SourceOptions, sink: SinkOptions | None) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        :raises UnsupportedFeatureError: if its C API cannot be called, and on Windows.
        """
        if os.name == "nt":  # where nothing waits for a pipe with a time-out
            raise UnsupportedFeatureError(
                "The client 'confluent' on Windows",
                "run continuous queries; use the client 'kafka-python'",
            )
        self._is_closed = False
        self._next_renewal = Deadline.after(RENEWAL_S)
        self._wake = WakePipe()
        self._consumer = StreamFetcher(source, self._wake.file)
        self._sink = NoSink() if sink is None else AtLeastOnceSink(sink, self._wake.file)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self._renew()
        self._consumer.revoke(offsets.keys())
        begins = self._sink.assign(offsets)
        self._consumer.assign(begins)
        return begins

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self._consumer.revoke(partitions)
        self._sink.revoke(partitions)

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        deadline = Deadline.after(timeout_s)
        if self._next_renewal.has_passed:
            self._renew()
        while not self._is_closed:
            self._sink.send()
            takes_records = takes_records and self._takes_outputs()
            found: Sequence[PolledRecords] = ()
            if takes_records:
                found = self._consumer.poll()
            else:
                self._consumer.handle_events()
            if found or self._sink.has_acknowledged or deadline.has_passed:
                return found
            if not takes_records:
                self._wake.wait(min(deadline.remaining, RENEWAL_S))
            elif self._consumer.is_drained:
                self._wake.wait(min(deadline.remaining, self._consumer.next_retry_s))
        return ()

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._consumer.take_skipped()

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self._sink.write(polled, [batch for batch in outputs if batch.num_rows])

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._sink.take_acknowledged()

    def is_settled(self) -> bool:
        self._sink.send()
        return self._sink.is_settled

    def close(self) -> None:
        self._is_closed = True
        with ExitStack() as closing:
            # Nothing may write to the pipe once it is closed.
            closing.callback(self._wake.close)
            closing.callback(self._sink.close)
            closing.callback(self._consumer.close)

    def _takes_outputs(self) -> bool:
        if not self._sink.takes_outputs:
            self._sink.renew()
        return self._sink.takes_outputs

    def _renew(self) -> None:
        self._next_renewal = Deadline.after(RENEWAL_S)
        self._consumer.renew()
        self._sink.renew()
