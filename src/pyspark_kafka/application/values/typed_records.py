"""Records with decoded keys or values, and what happens to records that cannot be decoded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import pyarrow as pa

from ...domain.topic_partition import TopicPartition
from ...domain.values.errors import (
    BadRecordStats,
    DecodedTooLargeError,
    FailureReason,
    MalformedValueError,
    NewSchemaError,
)
from ...domain.values.typed_schema import ColumnKind
from ...domain.values.value_options import ParseMode
from ...ports.letters import BadRecords
from ...ports.values.value_types import typed_record_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from ...domain.errors import PysparkKafkaError
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.records import Projection
    from ...domain.values.dead_letter import TaskIdentity
    from ...domain.values.typed_schema import OutputColumn, TypedSchema
    from ...ports.letters import DeadLetters
    from ...ports.reading import SourceEvents
    from ..reading.range_read import RangeRead
    from .column_decoder import ColumnDecoder, DecodedColumn


class _Stop(NamedTuple):
    """The first row that fails the query, and how."""

    row: int
    error: PysparkKafkaError


@final
class TypedRecords:
    """Decodes the batches of one task, by the mode of the options.

    ``FAILFAST`` fails at the first bad record, after the records before it. ``PERMISSIVE`` keeps
    bad records with what could be decoded, and ``DROPMALFORMED`` drops them. With dead letters, bad
    records are written there in both of these modes.
    """

    def __init__(
        self,
        schema: TypedSchema,
        decoders: Sequence[ColumnDecoder],
        letters: DeadLetters | None,
        events: SourceEvents,
        task: TaskIdentity,
    ) -> None:
        self._schema = schema
        self._arrow_schema = typed_record_schema(schema)
        self._decoders = decoders
        self._letters = letters
        self._events = events
        self._task = task
        self._failed: Counter[FailureReason] = Counter()
        self._first_failed: tuple[TopicPartition, int] | None = None
        self._has_letters = False
        self._letters_acknowledged = 0
        modes = {decoder.column.options.mode for decoder in decoders}
        self._mode = next(iter(modes), ParseMode.FAILFAST)

    @property
    def projection(self) -> Projection:
        """The columns to read."""
        return self._schema.projection(has_letters=self._letters is not None)

    def read_all(
        self, ranges: Iterable[tuple[TopicPartition, Iterable[pa.RecordBatch]]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of ranges; the letters before a record are acknowledged before it.

        Spark may stop after any record, with ``limit``, and kill this process.

        :raises PysparkKafkaError: as ``decode`` and ``DeadLetters``.
        """
        for partition, batches in ranges:
            for batch in batches:
                for records in self.decode(partition, batch):
                    self.flush()
                    yield records
        self.flush()
        self.report_failures()

    def decode(self, partition: TopicPartition, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the records of a batch that has the columns of ``TypedSchema.projection``.

        Usually one batch; more if the decoded values exceed what Arrow can address in one.

        :raises MalformedValueError: in the mode ``FAILFAST``, for the first bad record.
        :raises NewSchemaError: if ``onNewSchema`` is ``fail`` and a schema is newer.
        :raises DecodedTooLargeError: if a single record is too large.
        :raises RegistryUnavailableError: if the registry cannot look up a schema.
        :raises RegistryRefusedError: if it refuses to.
        """
        try:
            decoded = [decoder.decode(batch, partition.topic) for decoder in self._decoders]
        except DecodedTooLargeError:
            if batch.num_rows == 1:
                raise
            half = batch.num_rows // 2
            yield from self.decode(partition, batch.slice(0, half))
            yield from self.decode(partition, batch.slice(half))
            return
        stop = self._first_error(partition, batch, decoded)
        rows = batch.num_rows if stop is None else stop.row
        has_failed = np.logical_or.reduce([column.has_failed for column in decoded])[:rows]
        records = self._assembled(batch, decoded).slice(0, rows)
        if has_failed.any():
            self._handle_failures(partition, batch.slice(0, rows), decoded)
            if self._mode is ParseMode.DROPMALFORMED:
                records = records.filter(pa.array(~has_failed))
        if records.num_rows:
            yield records
        if stop is not None:
            raise stop.error

    def flush(self) -> None:
        """Wait until all letters are acknowledged.

        :raises PysparkKafkaError: as ``DeadLetters.flush``.
        """
        if self._letters is not None and self._has_letters:
            self._letters_acknowledged += self._letters.flush()
            self._has_letters = False

    def report_failures(self) -> BadRecordStats:
        """Return the numbers of bad records since the last call; if there are any, log them."""
        found = BadRecordStats(self._failed, self._letters_acknowledged)
        if self._first_failed is not None:
            self._events.records_failed(found, *self._first_failed)
        self._failed = Counter()
        self._first_failed = None
        self._letters_acknowledged = 0
        return found

    def _first_error(
        self, partition: TopicPartition, batch: pa.RecordBatch, decoded: Sequence[DecodedColumn]
    ) -> _Stop | None:
        stops = [
            stop
            for column in decoded
            for stop in (
                self._malformed(partition, batch, column),
                _newer(partition, batch, column),
            )
            if stop is not None
        ]
        return min(stops, key=lambda stop: stop.row, default=None)

    def _malformed(
        self, partition: TopicPartition, batch: pa.RecordBatch, column: DecodedColumn
    ) -> _Stop | None:
        if self._mode is not ParseMode.FAILFAST or not column.has_failed.any():
            return None
        row = int(np.argmax(column.has_failed))
        name = column.column.name
        error = MalformedValueError(name, partition, _offset(batch, row), column.describe(row))
        return _Stop(row, error)

    def _handle_failures(
        self, partition: TopicPartition, batch: pa.RecordBatch, decoded: Sequence[DecodedColumn]
    ) -> None:
        """Count bad records and write their letters: a record with both columns bad has one."""
        is_counted = np.zeros(batch.num_rows, np.bool_)
        for column in decoded:
            failed = column.has_failed[: batch.num_rows]
            rows = np.flatnonzero(failed & ~is_counted)
            is_counted |= failed
            reasons, counts = np.unique(column.reasons[rows], return_counts=True)
            for reason, count in zip(reasons, counts, strict=True):
                self._failed[FailureReason(int(reason))] += int(count)
            if len(rows):
                self._write_letters(batch, column, rows)
        if self._first_failed is None:
            self._first_failed = partition, _offset(batch, int(np.argmax(is_counted)))

    def _write_letters(
        self, batch: pa.RecordBatch, column: DecodedColumn, rows: NDArray[np.int64]
    ) -> None:
        if self._letters is None:
            return
        self._has_letters = True
        self._letters.write(
            BadRecords(
                batch.take(rows),
                column.column.name,
                column.decoder.decoder_class,
                column.reasons[rows],
                column.descriptions(rows),
                self._task,
            )
        )

    def _assembled(self, batch: pa.RecordBatch, decoded: Sequence[DecodedColumn]) -> pa.RecordBatch:
        by_name = {column.column.name: column for column in decoded}
        fields = {
            name: iter(column.fields())
            for name, column in by_name.items()
            if column.column.options.flatten
        }
        arrays = [
            _array(output, batch, by_name.get(output.source), fields)
            for output in self._schema.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow_schema)


def _array(
    output: OutputColumn,
    batch: pa.RecordBatch,
    column: DecodedColumn | None,
    fields: Mapping[str, Iterator[pa.Array[Any]]],
) -> pa.Array[Any]:
    if column is None:
        return batch.column(output.source)
    match output.kind:
        case ColumnKind.FIELD:
            return next(fields[output.source])
        case ColumnKind.ERROR:
            return column.errors()
        case ColumnKind.BYTES:
            return column.failed_bytes()
        case _:
            return column.structs()


def _newer(partition: TopicPartition, batch: pa.RecordBatch, column: DecodedColumn) -> _Stop | None:
    version = column.column.version
    if column.newer is None or version is None:
        return None
    row, found = column.newer
    name, offset = column.column.name, _offset(batch, row)
    return _Stop(row, NewSchemaError(name, partition, offset, version, found.version))


def _offset(batch: pa.RecordBatch, row: int) -> int:
    return int(batch.column("offset")[row].as_py())


@final
class TypedRead:
    """The executor's side of a query with typed values."""

    def __init__(self, range_read: RangeRead, typed: TypedRecords) -> None:
        self._range_read = range_read
        self._typed = typed

    def read(self, offset_range: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range, as ``read_all`` does."""
        return self.read_all([offset_range])

    def read_all(self, ranges: Sequence[OffsetRange]) -> Iterator[pa.RecordBatch]:
        """Yield the records of ranges, in the columns of the schema.

        :raises PysparkKafkaError: as ``RangeRead.read_all`` and ``TypedRecords.read_all``.
        """
        yield from self._typed.read_all(self._range_read.read_all(ranges, self._typed.projection))
