"""Records from librdkafka's consumer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError
from ...domain.options.option import INT32_MAX
from ...domain.reading.record_limits import OversizedRecords
from ...ports.reading import RecordReader
from ..fetching import Watermarks, read_range
from ..process_local import ProcessLocal
from .connection import Connection
from .consumed_partition import ConsumedPartitions
from .idle_watch import IdleWatch
from .librdkafka import load
from .offset_fetcher import ConfluentOffsetFetcher

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from ...domain.options.source import SourceOptions
    from ...domain.reading.data_loss import DataLoss
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.record_limits import RecordLimits
    from ...domain.reading.records import Projection
    from ..fetching import FetchedPartition

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
    # of memory besides its bytes, and leaves the processor's cache: at 1,000,000 a read takes
    # twice the memory and the same time.
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
"""librdkafka refuses less room for a response than so many bytes beyond ``fetch.max.bytes``."""


def response_limit(limits: RecordLimits, fetch_max_bytes: int) -> dict[str, str]:
    """Return the setting that admits the responses with records of the allowed size.

    librdkafka refuses larger ones, and decompresses no batch of zstd to more bytes. The other
    codecs have no limit there.
    """
    limit = min(fetch_max_bytes + max(limits.max_bytes, _RESPONSE_OVERHEAD_BYTES), INT32_MAX)
    return {"receive.message.max.bytes": str(limit)}


@final
class ConfluentRecordReader(RecordReader):
    """Reads one range at a time, and fetches the next small ones ahead; connects at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        :raises UnsupportedFeatureError: if its C API cannot be called.
        """
        self._library = load()
        self._connection = Connection(options)
        self._watch = IdleWatch(self._connection)
        self._watermarks = Watermarks(partial(ConfluentOffsetFetcher, options), options)
        self._oversized = OversizedRecords(options.record_limits)
        limit = response_limit(options.record_limits, self._connection.fetch_max_bytes)
        self._tuned = {**TUNED, **limit}
        self._poll_timeout_ms = options.poll_timeout_ms
        self._local: ProcessLocal[ConsumedPartitions] = ProcessLocal()

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        with self._watch.in_use():
            client = self._client() if ranges else self._local.get()
            if client is not None:
                client.expect(ranges)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        with self._watch.in_use():
            partition = self._client().partition(offset_range, projection)
        return self._read(partition, offset_range)

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._oversized.take_skipped()

    def close(self) -> None:
        with self._watch.in_use():
            self._close_client()

    def handle_idle_events(self) -> bool:
        """Do as ``Watched`` says."""
        client = self._local.get()
        if client is not None:
            try:
                client.handle_events()
            except PysparkKafkaError:
                self._close_client()
        return self._local.get() is not None

    def _read(
        self, partition: FetchedPartition, offset_range: OffsetRange
    ) -> Iterator[pa.RecordBatch]:
        with self._watch.in_use():
            # The client may have been closed since.
            self._connection.raise_refusal()
            yield from read_range(partition, offset_range, self._poll_timeout_ms)

    def _close_client(self) -> None:
        client = self._local.pop()
        if client is not None:
            client.close()

    def _client(self) -> ConsumedPartitions:
        if self._connection.is_outdated:
            self._close_client()
        client = self._local.get() or self._local.set(self._new_client())
        self._watch.start(self)
        return client

    def _new_client(self) -> ConsumedPartitions:
        return ConsumedPartitions(
            self._library, self._connection, FORCED, self._tuned, self._watermarks, self._oversized
        )
