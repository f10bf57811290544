"""One partition, fetched from its leader, or from the replica that the leader prefers (KIP-392)."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final, final

from kafka import errors as kafka_errors

from ...domain.errors import CorruptBatchError, KafkaRequestError
from ..fetching import Fetched, FetchedPartition
from ..kafka_format.record_decoder import FetchedRecords, RecordDecoder
from .failures import RETRIABLE_ERRORS
from .fetch_client import FetchClient

if TYPE_CHECKING:
    from ...domain.offset_range import OffsetRange
    from ..fetching import Watermarks
    from .connections import ReceiveBuffer
    from .failures import ErrorMapper
    from .fetch_wire import FetchResponse

_TRANSIENT_ERRORS: Final = (*RETRIABLE_ERRORS, kafka_errors.UnknownError)
"""The Java client's ``FetchCollector`` retries UNKNOWN_SERVER_ERROR too; it is not retriable."""


@final
class PartitionFetcher(FetchedPartition):
    """Fetches a range through elections, restarts and lost connections."""

    def __init__(
        self,
        client: FetchClient,
        errors: ErrorMapper,
        offset_range: OffsetRange,
        decoder: RecordDecoder,
        *,
        retry_s: float,
        watermarks: Watermarks,
    ) -> None:
        """Take a client that nothing else uses meanwhile."""
        self._client = client
        self._errors = errors
        self._range = offset_range
        self._partition = offset_range.partition
        self._decoder = decoder
        self._retry_s = retry_s
        self._watermarks = watermarks
        self._failing_since = math.inf
        self._buffer: ReceiveBuffer | None = None

    def fetch(self, position: int) -> Fetched | None:
        begun = time.monotonic()
        with self._errors.mapped_errors(f"a fetch from {self._partition}"):
            try:
                response = self._client.fetch(self._partition, position, self._received)
            except RETRIABLE_ERRORS as error:
                # The caller's pauses between fetches do not count.
                self._failing_since = min(self._failing_since, begun)
                return self._try_again(position, error)
        self._failing_since = math.inf
        if response is None:
            return self._try_again(position)
        if response.error is kafka_errors.NoError:
            return self._fetched(response, position)
        if response.error is not kafka_errors.OffsetOutOfRangeError:
            return self._failed(response.error, position)
        # The leader may hold what a replica does not (KIP-392).
        return Fetched((), position) if self._client.leave_replica(self._partition) else None

    def leave(self) -> None:
        self._client.abandon()
        if self._buffer is not None:
            self._client.buffers.release(self._buffer)
            self._buffer = None

    def watermarks(self) -> tuple[int, int]:
        return self._watermarks.of(self._partition)

    @property
    def _received(self) -> ReceiveBuffer:
        # One for each range: two ranges that are read in turns must not overwrite each other's.
        if self._buffer is None:
            self._buffer = self._client.buffers.acquire()
        return self._buffer

    def _fetched(self, response: FetchResponse, position: int) -> Fetched:
        if not response.records:
            return Fetched((), position)
        stretch = FetchedRecords.of(response.records, response.aborted)
        next_offset = stretch.next_offset
        if next_offset is None:
            # A broker sends the first batch complete, whatever its size (KIP-74).
            reason = stretch.problem or "it is cut off"
            raise CorruptBatchError(self._partition, position, reason)
        next_offset = max(position, next_offset)
        if position < next_offset < self._range.until_offset:
            self._client.send_ahead(self._partition, next_offset)
        batches = self._decoder.decode(stretch, position, self._range.until_offset)
        return Fetched(batches, next_offset)

    def _failed(self, error: type[kafka_errors.KafkaError], position: int) -> Fetched:
        if error is kafka_errors.CorruptRecordError:
            raise CorruptBatchError(self._partition, position, "its broker cannot read it")
        if not issubclass(error, _TRANSIENT_ERRORS):
            raise KafkaRequestError(f"a fetch from {self._partition}", error.__name__)
        return self._try_again(position)

    def _try_again(self, position: int, error: Exception | None = None) -> Fetched:
        """Return nothing and refresh the metadata, unless brokers have failed for too long."""
        if error and time.monotonic() - self._failing_since > self._errors.timeout_ms / 1_000:
            raise kafka_errors.KafkaConnectionError(str(error)) from error
        self._client.invalidate(self._partition)
        time.sleep(self._retry_s)
        return Fetched((), position)
