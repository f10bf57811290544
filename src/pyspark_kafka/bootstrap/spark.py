"""The data source that Spark finds by its name, connected with the containers.

Each of Spark's Python processes imports this module, also those that only look for the format:
containers and their pool are imported when they are used.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, final

from ..adapters.spark.data_source import KafkaDataSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from ..adapters.spark.tasks import Columns
    from ..application.use_cases import UseCases
    from ..domain.options.sink import SinkOptions
    from ..domain.options.source import SourceOptions
    from ..domain.reading.ranges import OffsetRange
    from ..domain.security.policy import OptionPolicy
    from .container import Container, SinkContainer
    from .pool import ContainerPool

OptionsT = TypeVar("OptionsT", bound="SourceOptions | SinkOptions")


class ContainerUseCases:
    """The ``UseCases`` of containers: new ones for drivers, pooled ones for tasks and sinks.

    The operator's policy is checked in each context: options were pickled since their parsing.
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

        if isinstance(options, SinkOptions):
            check_sink(options)
        else:
            check_source(options)

    @contextmanager
    def driver(self, options: SourceOptions) -> Iterator[Container]:
        from .container import closing_clients, container_for

        with (
            self.pool.logins.remember(options),
            closing_clients(container_for(_permitted(options))) as container,
        ):
            yield container

    def task(self, options: SourceOptions) -> AbstractContextManager[Container]:
        from .container import in_own_rack

        return self.pool.lease(in_own_rack(_permitted(options)))

    def sink(self, options: SinkOptions) -> AbstractContextManager[SinkContainer]:
        return self.pool.lease(_permitted(options))


def _permitted(options: OptionsT) -> OptionsT:
    from ..domain.security.policy import check_parsed
    from .option_policy import operator_policy

    check_parsed(options, operator_policy())
    return options


USE_CASES: UseCases = ContainerUseCases()


def range_frames(
    spark: SparkSession, options: SourceOptions
) -> Callable[[Sequence[OffsetRange]], DataFrame]:
    """Return the function that loads the batches of a ``KafkaSource`` as a session's data frames.

    :raises OptionsError: if the options need the operator's permission: tasks would refuse them.
    """
    from ..adapters.spark.range_frames import range_loader
    from ..domain.security.policy import check_parsed
    from .container import closing_clients, container_for
    from .option_policy import operator_policy, worker_environment

    check_parsed(options, operator_policy(spark))
    columns: Columns = options.projection
    if options.values:
        with closing_clients(container_for(options)) as container:
            columns = container.value_schemas().settle()
    return range_loader(spark, USE_CASES, options, columns, worker_environment(spark))


@final
class DefaultSource(KafkaDataSource):
    """``format("pyspark_kafka")``: Spark looks for a class of this name."""

    use_cases = USE_CASES
