"""The data source that Spark finds by its name, connected with the containers.

Each of Spark's Python processes imports this module, also those that only look for the format:
containers and their pool are imported when they are used.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar, final

from ..adapters.spark.data_source import KafkaDataSource
from ..application.use_cases import UseCases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from ..adapters.spark.range_frames import RangeFrames
    from ..application.reading.planner import KafkaBatch
    from ..application.reading.range_read import RangeRead
    from ..application.reading.stream import KafkaMicroBatchStream
    from ..application.values.sink_encoding import SinkEncoding
    from ..application.values.typed_records import TypedRead
    from ..application.values.value_schemas import ValueSchemas
    from ..application.writing.kafka_sink import KafkaSink
    from ..application.writing.sink_task import SinkTask
    from ..domain.options.sink import SinkOptions
    from ..domain.options.source import SourceOptions
    from ..domain.security.policy import OptionPolicy
    from ..domain.values.dead_letter import TaskIdentity
    from ..domain.values.typed_schema import TypedSchema
    from .container import Container
    from .pool import ContainerPool

OptionsT = TypeVar("OptionsT", bound="SourceOptions | SinkOptions")


class ContainerUseCases(UseCases):
    """Takes use cases from containers: new ones for drivers, pooled ones for tasks.

    Options are checked by the operator's policy each time: they were pickled since their parsing.
    """

    @property
    def pool(self) -> ContainerPool:
        """The pool of this process."""
        from .pool import POOL

        return POOL

    def option_policy(self) -> OptionPolicy:
        from .option_policy import operator_policy

        return operator_policy()

    def check_client(self, options: SourceOptions | SinkOptions) -> None:
        from ..domain.options.sink import SinkOptions
        from .checks import check_sink, check_source

        permitted = _permitted(options)
        if isinstance(permitted, SinkOptions):
            check_sink(permitted)
        else:
            check_source(permitted)

    @contextmanager
    def batch(self, options: SourceOptions) -> Iterator[KafkaBatch]:
        with self._driver_container(options) as container:
            yield container.batch()

    @contextmanager
    def stream(self, options: SourceOptions) -> Iterator[KafkaMicroBatchStream]:
        with self._driver_container(options) as container:
            stream = container.micro_batch_stream()
            freeze_loaded_objects()
            yield stream

    @contextmanager
    def _driver_container(self, options: SourceOptions) -> Iterator[Container]:
        from .container import closing_clients, container_for

        with (
            self.pool.logins.remember(options),
            closing_clients(container_for(_permitted(options))) as container,
        ):
            yield container

    @contextmanager
    def range_read(self, options: SourceOptions) -> Iterator[RangeRead]:
        with self.pool.lease(_permitted(options)) as container:
            yield container.range_read()

    @contextmanager
    def value_schemas(self, options: SourceOptions) -> Iterator[ValueSchemas]:
        with self._driver_container(options) as container:
            yield container.value_schemas()

    @contextmanager
    def typed_read(
        self, options: SourceOptions, schema: TypedSchema, task: TaskIdentity
    ) -> Iterator[TypedRead]:
        with self.pool.lease(_permitted(options)) as container:
            yield container.typed_read(schema, task)

    @contextmanager
    def kafka_sink(self, options: SinkOptions) -> Iterator[KafkaSink]:
        # The driver's Python worker commits batch after batch, so it reuses its connections.
        with self.pool.lease(_permitted(options)) as container:
            yield container.kafka_sink()

    @contextmanager
    def sink_encoding(self, options: SinkOptions) -> Iterator[SinkEncoding]:
        # Spark asks for a writer for each micro-batch, and schemas are registered once.
        with self.pool.lease(_permitted(options)) as container:
            yield container.sink_encoding()

    @contextmanager
    def sink_task(self, options: SinkOptions) -> Iterator[SinkTask]:
        with self.pool.lease(_permitted(options)) as container:
            yield container.sink_task()


def _permitted(options: OptionsT) -> OptionsT:
    from ..domain.security.policy import check_parsed
    from .option_policy import operator_policy

    check_parsed(options, operator_policy())
    return options


@cache
def freeze_loaded_objects() -> None:
    """Exempt what a driver's process has loaded from garbage collection, once.

    A trigger of thousands of partitions makes enough objects to start several collections, and
    each visits all modules: a quarter of the trigger's processor time. There is hardly any garbage
    yet, and collecting it would take 50 ms of a query's first second.
    """
    gc.freeze()


def range_frames(spark: SparkSession, options: SourceOptions) -> RangeFrames:
    """Return what loads the batches of a ``KafkaSource`` as data frames of a session.

    :raises OptionsError: if the options need the operator's permission: tasks would refuse them.
    """
    from ..adapters.spark.range_frames import RangeFrames
    from ..domain.security.policy import check_parsed
    from .container import closing_clients, container_for
    from .option_policy import operator_policy, worker_environment

    check_parsed(options, operator_policy(spark))
    columns = None
    if options.values:
        with closing_clients(container_for(options)) as container:
            schemas = container.value_schemas()
            columns = schemas.resolve()
            schemas.keep(columns)
        options = replace(options, values=tuple(one.options for one in columns.typed))
    return RangeFrames(spark, ContainerUseCases(), options, worker_environment(spark), columns)


@final
class DefaultSource(KafkaDataSource):
    """``format("pyspark_kafka")``: Spark looks for a class of this name."""

    use_cases = ContainerUseCases()
