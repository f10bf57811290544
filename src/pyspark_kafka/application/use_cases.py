"""The use cases of the driver and of tasks, as Spark's readers and writers get them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..domain.options.sink import SinkOptions
    from ..domain.options.source import SourceOptions
    from ..domain.security.policy import OptionPolicy
    from ..domain.values.dead_letter import TaskIdentity
    from ..domain.values.typed_schema import TypedSchema
    from .reading.batch_binding import BatchBinding
    from .reading.planner import KafkaBatch
    from .reading.range_read import RangeRead
    from .reading.stream import KafkaMicroBatchStream
    from .values.sink_encoding import SinkEncoding
    from .values.typed_records import TypedRead
    from .values.value_schemas import ValueSchemas
    from .writing.kafka_sink import KafkaSink
    from .writing.sink_task import SinkTask


class DriverUseCases(Protocol):
    """The driver's side of a query."""

    def batch(self) -> KafkaBatch:
        """Return the ranges of a batch query."""

    def micro_batch_stream(self) -> KafkaMicroBatchStream:
        """Return the offsets and ranges of a stream."""

    def value_schemas(self) -> ValueSchemas:
        """Return what finds the schemas of typed values."""


class TaskUseCases(Protocol):
    """The executors' side of a query."""

    def batch_binding(self) -> BatchBinding:
        """Return what binds the tasks of a batch query to offsets."""

    def range_read(self) -> RangeRead:
        """Return what reads ranges."""

    def typed_read(self, schema: TypedSchema, task: TaskIdentity) -> TypedRead:
        """Return what reads ranges with typed values."""


class SinkUseCases(Protocol):
    """Both sides of a sink."""

    def kafka_sink(self) -> KafkaSink:
        """Return what commits the batches of a stream."""

    def sink_encoding(self) -> SinkEncoding:
        """Return what encodes the columns that have formats."""

    def sink_task(self) -> SinkTask:
        """Return what writes the rows of a task."""


class UseCases(Protocol):
    """Creates use cases from options. It is pickled to executors, so it has no state.

    Leaving a context releases the clients of its use cases.
    """

    def option_policy(self) -> OptionPolicy:
        """Return what the operator of this process allows queries to set.

        :raises OptionPolicyError: if the operator's list is invalid.
        """

    def check_client(self, options: SourceOptions | SinkOptions) -> None:
        """Check the options of a client without connecting it.

        :raises OptionsError: if there is no such client, it does not know a setting, or it cannot
            write as a sink's options demand.
        :raises MissingDependencyError: if its package is not installed.
        """

    def driver(self, options: SourceOptions) -> AbstractContextManager[DriverUseCases]:
        """Return the use cases of a query's driver, with their own clients."""

    def task(self, options: SourceOptions) -> AbstractContextManager[TaskUseCases]:
        """Return the use cases of a query's tasks, which share clients with those before them."""

    def sink(self, options: SinkOptions) -> AbstractContextManager[SinkUseCases]:
        """Return the use cases of a sink, which share clients with those before them.

        On the driver as well: Spark asks for a writer for each micro-batch, whose commits reuse
        connections, and whose schemas are registered once.
        """
