"""Parts of both the batch and the stream reader: partitions, tasks, and errors."""

from __future__ import annotations

import copy
import logging
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, TypeAlias, final

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from ...domain.errors import PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from ...application.use_cases import TaskUseCases, UseCases
    from ...domain.options.source import SourceOptions
    from ...domain.reading.batch_tasks import BatchTask
    from ...domain.reading.ranges import TaskRanges
    from ...domain.reading.records import Projection
    from ...domain.values.dead_letter import TaskIdentity
    from ...domain.values.typed_schema import TypedSchema

    Columns: TypeAlias = Projection | TypedSchema
    """The columns of a read: of records as they are, or of typed values."""

log = logging.getLogger("pyspark_kafka")

QUERY_ID: Final = "sql.streaming.queryId"
"""The local property with a query's id, stable over restarts (``StreamExecution.QUERY_ID_KEY``)."""


def input_partitions(tasks: Iterable[TaskRanges | BatchTask]) -> list[InputPartition]:
    """Return a Spark partition for the ranges of each task."""
    return [InputPartition(one) for one in tasks]


def read_ranges(
    use_cases: UseCases,
    options: SourceOptions,
    columns: Columns,
    ranges_of: Callable[[TaskUseCases], TaskRanges],
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task's ranges."""
    from ...domain.reading.records import Projection

    with strip_tracebacks(), use_cases.task(options) as task:
        ranges = ranges_of(task)
        if isinstance(columns, Projection):
            for _, batches in task.range_read().read_all(ranges, columns):
                yield from batches
        else:
            typed_read = task.typed_read(columns, task_identity())
            yield from typed_read.read_all(ranges)


def task_identity() -> TaskIdentity:
    """Return the query and the task that run in this thread, for dead letters."""
    from ...domain.values.dead_letter import TaskIdentity

    context = TaskContext.get()
    if context is None:
        return TaskIdentity()
    query_id = context.getLocalProperty(QUERY_ID)
    return TaskIdentity(query_id or TaskIdentity().query, str(context.partitionId()))


def strip_tracebacks() -> AbstractContextManager[None]:
    """Raise this library's errors without their traceback, and with one line for the cause.

    Spark shows the whole traceback of a Python worker: with a client's exception as the cause that
    is a screen of frames around one useful line. The traceback is logged at level DEBUG. A cause
    that is an error of this library is added as a note.
    """
    return _Stripping()


@final
class _Stripping(AbstractContextManager[None]):
    """A class, since a generator would add its own frame and contextlib's to each traceback."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, PysparkKafkaError):
            return
        log.debug("Failed in Spark's Python worker", exc_info=error)
        # A copy, since Python restores the traceback of an exception that leaves the block.
        stripped = copy.copy(error)
        if isinstance(error.__cause__, PysparkKafkaError):
            stripped.add_note(f"Caused by: {error.__cause__}")
        raise stripped from None
