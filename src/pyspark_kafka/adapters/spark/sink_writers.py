"""Spark's writers of batches and streams over the use cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ...domain.sink_schema import TYPES
from ...domain.sink_task import SinkTaskId, WriteResult
from .tasks import strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ...application.use_cases import UseCases
    from ...domain.options import SinkOptions

BATCH_ID = "streaming.sql.batchId"
"""The local property that holds a micro-batch's number (``MicroBatchExecution.BATCH_ID_KEY``)."""

QUERY_ID = "sql.streaming.queryId"
"""The one that holds a query's id, the same after a restart (``StreamExecution.QUERY_ID_KEY``)."""


@final
@dataclass(frozen=True)
class WrittenMessage(WriterCommitMessage):
    """What a task tells the driver."""

    written: WriteResult
    query_id: str | None = None


@final
class KafkaBatchWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query; what is acknowledged stays, whatever fails later."""

    def __init__(self, use_cases: UseCases, options: SinkOptions) -> None:
        self._use_cases = use_cases
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark's own
        return WrittenMessage(_write(self._use_cases, self._options, iterator))


@final
class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches; exactly-once, the driver makes them visible.

    Spark makes one for each micro-batch before its tasks run, and another to commit or abort it.
    """

    def __init__(self, use_cases: UseCases, options: SinkOptions) -> None:
        self._use_cases = use_cases
        self._options = options
        self._committed_through = -1
        if options.is_exactly_once:
            with use_cases.kafka_sink(options) as sink:
                self._committed_through = sink.recover()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark's own
        if not self._options.is_exactly_once:
            return WrittenMessage(_write(self._use_cases, self._options, iterator))
        task = _task_id()
        if task.batch_id <= self._committed_through:
            # The batch can be seen already. Spark runs it again, as it had not come to know that.
            for _ in iterator:
                pass
            return WrittenMessage(WriteResult(), task.query_id)
        transactional_id = task.transactional_id(self._options.transactional_id_prefix)
        written = _write(self._use_cases, self._options, iterator, transactional_id)
        return WrittenMessage(written, task.query_id)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        if not self._options.is_exactly_once:
            return
        told = cast("Sequence[WrittenMessage]", messages)
        query_id = next((message.query_id for message in told if message.query_id), None)
        with strip_tracebacks(), self._use_cases.kafka_sink(self._options) as sink:
            sink.commit(batchId, query_id, [message.written for message in told])

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: ARG002, N803  # Spark's name
    ) -> None:
        if not self._options.is_exactly_once:
            return
        told = cast("Sequence[WrittenMessage | None]", messages)
        with strip_tracebacks(), self._use_cases.kafka_sink(self._options) as sink:
            sink.abort([message.written if message else None for message in told])


def _write(
    use_cases: UseCases,
    options: SinkOptions,
    batches: Iterator[pa.RecordBatch],
    transactional_id: str | None = None,
) -> WriteResult:
    with strip_tracebacks(), use_cases.sink_task(options) as task:
        needed = (_record_columns(batch, options) for batch in batches)
        return task.write(needed, transactional_id)


def _record_columns(batch: pa.RecordBatch, options: SinkOptions) -> pa.RecordBatch:
    """Leave out the columns that are of no record, and topics that the option stands above."""
    unused = {"topic"} if options.topic is not None else set()
    return batch.select(
        [name for name in TYPES if name in batch.schema.names and name not in unused]
    )


def _task_id() -> SinkTaskId:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("outside of a task of Spark's")
    query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query_id is None or batch_id is None:
        raise RuntimeError("outside of a micro-batch of Spark's")
    return SinkTaskId(
        query_id=query_id,
        batch_id=int(batch_id),
        partition=context.partitionId(),
        attempt=context.attemptNumber(),
    )
