"""Spark's writers of batches and streams over the use cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ...domain.checkpoints.entries import NO_PLAN, SinkPlan, other_query_error
from ...domain.writing.transaction import SinkTaskId, WriteResult
from .spark_api import DataSourceStreamArrowWriter
from .tasks import QUERY_ID, strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ...application.use_cases import UseCases
    from ...domain.options.sink import SinkOptions

BATCH_ID = "streaming.sql.batchId"
"""The local property with a micro-batch's id (``MicroBatchExecution.BATCH_ID_KEY``)."""

RUN_ID = "spark.jobGroup.id"
"""The local property with the id of this run of a streaming query, whose jobs are one group."""


@final
@dataclass(frozen=True)
class TaskCommitMessage(WriterCommitMessage):
    """The result of a task, sent to the driver."""

    written: WriteResult
    query_id: str | None = None
    plan: SinkPlan = NO_PLAN
    """The plan with which the task ran."""


@final
class KafkaBatchWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query; acknowledged records stay even if a task fails."""

    def __init__(self, use_cases: UseCases, options: SinkOptions) -> None:
        self._use_cases = use_cases
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark's own
        return TaskCommitMessage(_write(self._use_cases, self._options, iterator))


@final
class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches; with exactly-once delivery, the driver commits their transactions.

    Spark creates one for each micro-batch before its tasks run, and another to commit or abort it.
    """

    def __init__(self, use_cases: UseCases, options: SinkOptions) -> None:
        self._use_cases = use_cases
        self._options = options
        self._plan = NO_PLAN
        if options.is_exactly_once:
            with use_cases.sink(options) as sink:
                self._plan = sink.kafka_sink().recover()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark's own
        if not self._options.is_exactly_once:
            return TaskCommitMessage(_write(self._use_cases, self._options, iterator))
        task, plan = _task_id(), self._plan
        if task.batch_id <= plan.committed_through:
            # The batch is committed in Kafka, but Spark failed before it recorded that.
            if plan.query_id is not None and plan.query_id != task.query_id:
                path = str(self._options.metadata_path)
                raise other_query_error(path, plan.query_id, task.query_id)
            for _ in iterator:
                pass
            return TaskCommitMessage(WriteResult(), task.query_id, plan)
        transactional_id = task.transactional_id(self._options.transactional_id_prefix, plan.log_id)
        written = _write(
            self._use_cases, self._options, iterator, transactional_id, plan.used_until_ms
        )
        return TaskCommitMessage(written, task.query_id, plan)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        if not self._options.is_exactly_once:
            return
        results = cast("Sequence[TaskCommitMessage]", messages)
        written = [message.written for message in results]
        query_id = next((message.query_id for message in results if message.query_id), None)
        plan = next((message.plan for message in results), NO_PLAN)
        with strip_tracebacks(), self._use_cases.sink(self._options) as sink:
            sink.kafka_sink().commit(batchId, query_id, written, plan)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        if not self._options.is_exactly_once:
            return
        results = cast("Sequence[TaskCommitMessage | None]", messages)
        written = [message and message.written for message in results]
        query_id = next((each.query_id for each in results if each and each.query_id), None)
        with strip_tracebacks(), self._use_cases.sink(self._options) as sink:
            sink.kafka_sink().abort(batchId, written, query_id)


def _write(
    use_cases: UseCases,
    options: SinkOptions,
    batches: Iterator[pa.RecordBatch],
    transactional_id: str | None = None,
    used_until_ms: int = -1,
) -> WriteResult:
    # The import loads Arrow, which the process that commits a batch query does not need.
    from ...application.writing.sink_task import record_columns

    with strip_tracebacks(), use_cases.sink(options) as sink:
        needed = (record_columns(batch, options.topic) for batch in batches)
        return sink.sink_task().write(needed, transactional_id, used_until_ms)


def _task_id() -> SinkTaskId:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("outside of a Spark task")
    query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    run_id = context.getLocalProperty(RUN_ID)
    if query_id is None or batch_id is None or run_id is None:
        raise RuntimeError("outside of a Spark micro-batch")
    return SinkTaskId(
        query_id=query_id,
        run_id=run_id,
        batch_id=int(batch_id),
        partition=context.partitionId(),
        attempt=context.taskAttemptId(),
    )
