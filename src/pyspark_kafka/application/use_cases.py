"""The factory of use cases for the driver and for tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..domain.options.sink import SinkOptions
    from ..domain.options.source import SourceOptions
    from ..domain.security.policy import OptionPolicy
    from ..domain.values.dead_letter import TaskIdentity
    from ..domain.values.typed_schema import TypedSchema
    from .reading.planner import KafkaBatch
    from .reading.range_read import RangeRead
    from .reading.stream import KafkaMicroBatchStream
    from .values.sink_encoding import SinkEncoding
    from .values.typed_records import TypedRead
    from .values.value_schemas import ValueSchemas
    from .writing.kafka_sink import KafkaSink
    from .writing.sink_task import SinkTask


class UseCases(ABC):
    """Creates use cases from options. It is pickled to executors, so it has no state.

    Leaving a context releases the use case's clients.
    """

    @abstractmethod
    def option_policy(self) -> OptionPolicy:
        """Return what the operator of this process allows queries to set.

        :raises OptionPolicyError: if the operator's list is invalid.
        """

    @abstractmethod
    def check_client(self, options: SourceOptions | SinkOptions) -> None:
        """Check what can be known of a client without connecting it.

        :raises OptionsError: if there is no such client, it does not know a setting, or it cannot
            write as a sink's options demand.
        :raises MissingDependencyError: if its package is not installed.
        """

    @abstractmethod
    def batch(self, options: SourceOptions) -> AbstractContextManager[KafkaBatch]:
        """Return the driver's side of a batch query."""

    @abstractmethod
    def stream(self, options: SourceOptions) -> AbstractContextManager[KafkaMicroBatchStream]:
        """Return the driver's side of a streaming query."""

    @abstractmethod
    def range_read(self, options: SourceOptions) -> AbstractContextManager[RangeRead]:
        """Return the executor's side of both."""

    @abstractmethod
    def value_schemas(self, options: SourceOptions) -> AbstractContextManager[ValueSchemas]:
        """Return what finds the schemas of typed values, on the driver."""

    @abstractmethod
    def typed_read(
        self, options: SourceOptions, schema: TypedSchema, task: TaskIdentity
    ) -> AbstractContextManager[TypedRead]:
        """Return the executor's side of a query with typed values."""

    @abstractmethod
    def kafka_sink(self, options: SinkOptions) -> AbstractContextManager[KafkaSink]:
        """Return the driver's side of an exactly-once sink."""

    @abstractmethod
    def sink_encoding(self, options: SinkOptions) -> AbstractContextManager[SinkEncoding]:
        """Return what settles the schemas of a sink, on the driver."""

    @abstractmethod
    def sink_task(self, options: SinkOptions) -> AbstractContextManager[SinkTask]:
        """Return the executor's side of a sink."""
