"""Parts of both the batch and the stream reader: partitions, tasks, and errors."""

from __future__ import annotations

import copy
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from ...domain.errors import PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from ...application.use_cases import UseCases
    from ...domain.offset_range import OffsetRange
    from ...domain.options import SourceOptions
    from ...domain.projection import Projection

log = logging.getLogger("pyspark_kafka")


def input_partitions(ranges: Iterable[OffsetRange]) -> list[InputPartition]:
    """Return a Spark partition per range; each becomes a task."""
    return [InputPartition(offset_range) for offset_range in ranges]


def read_range(
    use_cases: UseCases, options: SourceOptions, partition: InputPartition, projection: Projection
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task's range.

    If a batch query has nothing to read, Spark adds a partition without a range:
    ``plan_data_source_read`` replaces an empty list by ``InputPartition(None)``.
    """
    if partition.value is None:
        return
    with strip_tracebacks(), use_cases.range_read(options) as range_read:
        yield from range_read.read(partition.value, projection)


@contextmanager
def strip_tracebacks() -> Iterator[None]:
    """Raise this library's errors without their traceback, and with one line for the cause.

    Spark shows the whole traceback of a Python worker: with a client's exception as the cause that
    is a screen of frames around one useful line. The traceback is logged at level DEBUG. A cause
    that is an error of this library is added as a note.
    """
    try:
        yield
    except PysparkKafkaError as error:
        log.debug("Failed in Spark's Python worker", exc_info=True)
        # A copy, since contextlib restores the traceback of an exception that it has seen.
        stripped = copy.copy(error)
        if isinstance(error.__cause__, PysparkKafkaError):
            stripped.add_note(f"Caused by: {error.__cause__}")
        raise stripped from None
