"""Records by librdkafka's consumer."""

from __future__ import annotations

import logging
import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Protocol, final

from ...ports.record_reader import RecordReader
from ..fetching.range_loop import read_range
from ..fetching.watermarks import Watermarks
from .connection import Connection
from .consume_fallback import ConsumeFallback
from .consumed_partition import ConsumedPartitions
from .librdkafka import LibraryUnusableError, load
from .offset_fetcher import ConfluentOffsetFetcher

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from ...domain.offset_range import OffsetRange
    from ...domain.options import SourceOptions
    from ...domain.projection import Projection
    from ..fetching.range_loop import FetchedPartition

FORCED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    # An offset that the broker does not hold is an error, and never a silent jump.
    "auto.offset.reset": "error",
    # Tells the end of a partition whose last offsets hold no visible record.
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    "check.crcs": "true",
}

TUNED: Final = {
    # A fetch asks for more while fewer messages than these are queued. What is queued costs
    # memory, half a kilobyte a message besides its bytes, and falls out of the processor's cache:
    # at 1,000,000 a read takes twice the memory, and no less time.
    "queued.min.messages": "20000",
    # At its default, a second, it pauses a range read whenever the queue is full: three to five
    # times slower.
    "fetch.queue.backoff.ms": "1",
    # ... and this bounds the queue, in kilobytes.
    "queued.max.messages.kbytes": "16384",
    # Twice the default, for fewer answers that the reader waits for. Four megabytes would read
    # faster still, but take 30 MB more where records are well compressed: an answer is
    # decompressed as a whole.
    "fetch.message.max.bytes": "2097152",
    # A fetch that waits at the end of the last range holds the next range's fetch up for as long,
    # half a second by default; what a range spans is in the log already.
    "fetch.wait.max.ms": "10",
}

log = logging.getLogger(__name__)


class _Client(Protocol):
    """What is kept from one range to the next."""

    def partition(self, offset_range: OffsetRange, projection: Projection) -> FetchedPartition: ...

    def close(self) -> None: ...


@final
class ConfluentRecordReader(RecordReader):
    """Consumes one partition at a time, with one handle that is made at first use.

    librdkafka's C API is called where it can be, and else ``Consumer.consume``.
    """

    def __init__(self, options: SourceOptions, library: Callable[[], ctypes.CDLL] = load) -> None:
        """Check the options; nothing is connected yet."""
        self._connection = Connection(options)
        self._watermarks = Watermarks(partial(ConfluentOffsetFetcher, options), options)
        self._poll_timeout_ms = options.poll_timeout_ms
        self._library = library
        self._made: _Client | None = None
        self._process = 0

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        partition = self._client().partition(offset_range, projection)
        return read_range(partition, offset_range, self._poll_timeout_ms)

    def close(self) -> None:
        made, self._made = self._made, None
        # After a fork the handle is the parent's, and its threads are not here to end.
        if made is not None and self._process == os.getpid():
            made.close()

    def _client(self) -> _Client:
        if self._made is None or self._process != os.getpid():
            self._made = self._make()
            self._process = os.getpid()
        return self._made

    def _make(self) -> _Client:
        try:
            library = self._library()
        except LibraryUnusableError as error:
            _warn_once(str(error))
            return ConsumeFallback(self._connection, FORCED, TUNED)
        return ConsumedPartitions(library, self._connection, FORCED, TUNED, self._watermarks)


@lru_cache(maxsize=1)
def _warn_once(missing: str) -> None:
    log.warning(
        "The client 'confluent' reads at a fifth of its rate, through Consumer.consume: "
        "what is missing to call librdkafka itself is %s",
        missing,
    )
