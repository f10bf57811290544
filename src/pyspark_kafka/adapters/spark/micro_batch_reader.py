"""Spark's micro-batch reader over the use cases, without what depends on the release of Spark."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from ...domain.errors import MetadataLogError
from ...domain.partition_offsets import PartitionOffsets
from .tasks import input_partitions, read_ranges, strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from ...application.reading.micro_batch_stream import KafkaMicroBatchStream
    from ...application.use_cases import UseCases
    from ...domain.options import SourceOptions
    from .tasks import Columns

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

    def initialOffset(self) -> Offsets:  # noqa: N802
        with strip_tracebacks():
            return self._stream().initial_offset().to_dict()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        with strip_tracebacks():
            tasks = self._stream().plan_tasks(self._checked(start), self._checked(end))
        return input_partitions(tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(self._use_cases, self._options, partition, self._columns)

    def commit(self, end: Offsets) -> None:
        """Report what Spark has committed; Spark's own log is authoritative."""
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
            self._opened = stack, stack.enter_context(self._use_cases.stream(self._options))
        return self._opened[1]


def _offsets(content: Offsets) -> PartitionOffsets:
    """Check what Spark passes: it is from a file of the checkpoint.

    :raises MetadataLogError: if it is not what this source has returned.
    """
    try:
        return PartitionOffsets.from_checkpoint_object(content)
    except ValueError as error:
        raise MetadataLogError(
            "the directory 'offsets' of the query's checkpoint",
            f"The checkpoint has offsets that are not of this source: {error}. Restore the newest "
            "file from a backup, or start the query with a new checkpoint",
        ) from error
