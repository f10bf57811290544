"""What a task does, in batch and in streams alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .strip_tracebacks import strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ...application.use_cases import UseCases
    from ...domain.offset_range import OffsetRange
    from ...domain.options import SourceOptions
    from ...domain.projection import Projection


def read_range(
    use_cases: UseCases,
    options: SourceOptions,
    offset_range: OffsetRange | None,
    projection: Projection,
) -> Iterator[pa.RecordBatch]:
    """Read a task's range.

    Where a batch query has nothing to read, Spark makes one partition of its own, without a
    range: ``plan_data_source_read`` puts ``InputPartition(None)`` for an empty list.
    """
    if offset_range is None:
        return
    with strip_tracebacks(), use_cases.range_read(options) as range_read:
        yield from range_read.read(offset_range, projection)
