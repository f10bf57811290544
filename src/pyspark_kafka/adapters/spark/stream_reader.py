"""Spark's micro-batch readers over the use cases, one for each interface that Spark has had."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, final

from pyspark.sql.datasource import DataSourceStreamReader

from ...domain.errors import MetadataLogError, OptionsError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.admission import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    limits_of,
)
from .spark_api import HAS_READ_LIMITS
from .tasks import input_partitions, read_ranges, strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming import datasource as spark_limits

    from ...application.reading.stream import KafkaMicroBatchStream
    from ...application.use_cases import UseCases
    from ...domain.options.source import SourceOptions
    from .tasks import Columns

if HAS_READ_LIMITS:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for Spark's class in older releases, which make no ``KafkaStreamReader``."""


Offsets = dict[str, dict[str, int]]
"""Offsets as Spark passes them and writes them to its log."""


class MicroBatchReader(DataSourceStreamReader):
    """Plans in the driver's Python process; pickled copies read in tasks."""

    def __init__(self, use_cases: UseCases, options: SourceOptions, columns: Columns) -> None:
        self._use_cases = use_cases
        self._options = options
        self._columns = columns
        self._opened: tuple[ExitStack, KafkaMicroBatchStream] | None = None
        self._known: tuple[tuple[Offsets, PartitionOffsets], ...] = ()

    @property
    def _may_be_first(self) -> bool:
        """Whether the batch to plan may be the first one."""
        return True

    def initialOffset(self) -> Offsets:  # noqa: N802
        with strip_tracebacks():
            return self._stream().initial_offset().to_dict()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        with strip_tracebacks():
            tasks = self._stream().plan_tasks(
                self._checked(start), self._checked(end), may_be_first=self._may_be_first
            )
        return input_partitions(tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(self._use_cases, self._options, self._columns, lambda _: partition.value)

    def commit(self, end: Offsets) -> None:
        """Report the offsets that Spark has committed; Spark's own log is authoritative."""
        with strip_tracebacks():
            self._stream().commit(self._checked(end))

    def stop(self) -> None:
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None

    def __getstate__(self) -> dict[str, Any]:
        # The copies that read in tasks have no stream and no offsets.
        return {**self.__dict__, "_opened": None, "_known": ()}

    def _return(self, end: PartitionOffsets) -> Offsets:
        """Return the end of a batch to Spark, which will pass it back."""
        return self._remember(end.to_dict(), end)[0]

    def _checked(self, content: Offsets) -> PartitionOffsets:
        """Return offsets from a checkpoint, without reading those of this batch again."""
        for known, offsets in self._known:
            if known == content:
                return offsets
        return self._remember(content, _offsets(content))[1]

    def _remember(
        self, content: Offsets, offsets: PartitionOffsets
    ) -> tuple[Offsets, PartitionOffsets]:
        """Keep the start and the end of a batch, which Spark passes to several methods."""
        self._known = (*self._known[-1:], (content, offsets))
        return self._known[-1]

    def _stream(self) -> KafkaMicroBatchStream:
        if self._opened is None:
            stack = ExitStack()
            driver = stack.enter_context(self._use_cases.driver(self._options))
            self._opened = stack, driver.micro_batch_stream()
            freeze_loaded_objects()
        return self._opened[1]


@cache
def freeze_loaded_objects() -> None:
    """Exempt the objects that a driver's process has loaded from garbage collection, once.

    A trigger of thousands of partitions makes enough objects to start several collections, and
    each visits all modules: a quarter of the trigger's processor time. There is little garbage yet,
    and collecting it would take 50 ms of a query's first second.
    """
    gc.freeze()


def _offsets(content: Offsets) -> PartitionOffsets:
    """Check the offsets that Spark passes: they are from a file of the checkpoint.

    :raises MetadataLogError: if this source cannot have returned them.
    """
    try:
        return PartitionOffsets.from_checkpoint_object(content)
    except ValueError as error:
        raise MetadataLogError(
            "the directory 'offsets' of the query's checkpoint",
            f"The checkpoint has offsets that are not of this source: {error}. Restore the newest "
            "file from a backup, or start the query with a new checkpoint",
        ) from error


@final
class OlderStreamReader(MicroBatchReader):
    """The reader of Spark 4.0 and 4.1, which pass neither a start nor a limit.

    It remembers where the next batch starts. Spark calls ``initialOffset`` if the query is new.
    Otherwise it first calls ``partitions`` with the last offsets of its log as start and end
    (``PythonMicroBatchStream.setLatestSeenOffset``).
    """

    _start: PartitionOffsets | None = None
    _is_new = False
    _is_placed = False
    """Whether Spark has passed the offsets where the query continues."""

    @property
    def _may_be_first(self) -> bool:
        return self._is_new

    def initialOffset(self) -> Offsets:  # noqa: N802
        self._is_new = True
        return super().initialOffset()

    def latestOffset(self) -> Offsets:  # type: ignore[override]  # noqa: N802
        with strip_tracebacks():
            stream = self._stream()
            start = stream.initial_offset() if self._start is None else self._start
            self._start = stream.latest_offset(start, stream.default_read_limit)
            return self._return(self._start)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        with strip_tracebacks():
            if start == end and not (self._is_new or self._is_placed):
                self._check_order()
            self._is_placed = True
            self._start = self._checked(end)
        return [] if start == end else super().partitions(start, end)

    def _check_order(self) -> None:
        """Check that no limit was applied before Spark passed the offsets to continue from.

        Spark's wrapper for ``Trigger.AvailableNow`` asks for the end of the query first. A limited
        end would count from the initial offsets: the query would return to records it has read.

        :raises OptionsError: if a limit was applied.
        """
        if self._start is not None and self._options.read_limit != ReadAllAvailable():
            problem = (
                "The limits of this query cannot be used with Trigger.AvailableNow while "
                "'spark.sql.streaming.triggerAvailableNowWrapper.enabled' is 'true'. Set it to "
                "'false', remove the limits, or use Spark 4.2 or newer"
            )
            raise OptionsError([problem])


@final
class KafkaStreamReader(MicroBatchReader, SupportsTriggerAvailableNow):
    """The reader of Spark 4.2 and newer, which pass a start and a limit.

    Supports admission control, and ``Trigger.AvailableNow`` with it.
    """

    def getDefaultReadLimit(self) -> spark_limits.ReadLimit:  # noqa: N802
        """Return one of Spark's five built-in limits, and never a composite one.

        The options' whole limit is applied in ``latestOffset``.
        """
        return to_spark(self._stream().default_read_limit)

    def latestOffset(self, start: Offsets, limit: spark_limits.ReadLimit) -> Offsets:  # noqa: N802
        with strip_tracebacks():
            stream = self._stream()
            read_limit = from_spark(limit, stream.default_read_limit)
            return self._return(stream.latest_offset(self._checked(start), read_limit))

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802
        latest = self._stream().report_latest_offset()
        return latest.to_dict() if latest else None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._stream().prepare_for_trigger_available_now()


def to_spark(limit: ReadLimit) -> spark_limits.ReadLimit:
    """Return Spark's limit for the first part of a limit.

    Any limit except ``ReadAllAvailable`` works: Spark passes that one for Trigger.Once, which
    ignores limits, and nothing else identifies the trigger.
    """
    from pyspark.sql.streaming import datasource as spark_limits

    match limits_of(limit)[0]:
        case ReadMinRows(rows):
            return spark_limits.ReadMinRows(rows)
        case ReadMaxRows(rows):
            return spark_limits.ReadMaxRows(rows)
        case ReadMaxBytes(size):
            return spark_limits.ReadMaxBytes(size)
        case _:
            return spark_limits.ReadAllAvailable()


def from_spark(given: spark_limits.ReadLimit, configured: ReadLimit) -> ReadLimit:
    """Return the limit of a batch: none for Trigger.Once, otherwise the options' limit."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable as SparkReadAllAvailable

    if isinstance(given, SparkReadAllAvailable):
        return ReadAllAvailable()
    return configured


def stream_reader_class() -> type[MicroBatchReader]:
    """Return the class of stream readers that the running Spark calls."""
    return KafkaStreamReader if HAS_READ_LIMITS else OlderStreamReader
