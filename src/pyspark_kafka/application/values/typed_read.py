"""Reading ranges with decoded keys or values."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ...domain.reading.offset_range import OffsetRange
    from ..reading.range_read import RangeRead
    from .typed_records import TypedRecords


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
