"""Continuous queries: Kafka to a function on Arrow to Kafka, in milliseconds.

from pyspark_kafka import continuous

query = continuous.start(
spark,
function,
source={"kafka.bootstrap.servers": servers, "subscribe": "orders"},
sink={"kafka.bootstrap.servers": servers, "topic": "totals"},
checkpointLocation="/checkpoints/totals",
)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from .application.continuous.query import ContinuousQuery
from .bootstrap.continuous import (
    DIRECTORY,
    SOCKET,
    ConstantFunction,
    QueryPlan,
    start_in_threads,
    start_on_spark,
)
from .bootstrap.option_policy import operator_policy
from .domain.checkpoints.storage_path import StoragePath
from .domain.continuous.settings import (
    ExecutionLimits,
    RestartLimits,
    interval_ms,
    option_conflicts,
)
from .domain.errors import OptionsError
from .domain.options.option import QueryKind, lower
from .domain.options.sink import parse_sink_options
from .domain.options.source import parse_source_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from .domain.continuous.progress import EpochProgress
    from .domain.options.sink import SinkOptions
    from .domain.options.source import SourceOptions
    from .domain.security.policy import OptionPolicy
    from .ports.continuous import FunctionFactory, RecordFunction
    from .ports.lag import ProgressListener

T = TypeVar("T")

__all__ = ["ContinuousQuery", "ExecutionLimits", "RestartLimits", "start"]

_STORAGE_OPTIONS: Final = "metadatastorageoptions"


def start(  # noqa: PLR0913  # the options of a query
    spark: SparkSession | None,
    function: RecordFunction | None = None,
    *,
    source: Mapping[str, str],
    checkpointLocation: str,  # noqa: N803  # Spark's name
    sink: Mapping[str, str] | None = None,
    factory: FunctionFactory | None = None,
    epoch: str | None = None,
    name: str | None = None,
    tasks: int | None = None,
    channel: Literal["socket", "directory"] | None = None,
    limits: ExecutionLimits | None = None,
    listeners: Sequence[ProgressListener | Callable[[EpochProgress], None]] = (),
) -> ContinuousQuery:
    """Start a continuous query, and return it while it runs.

    ``function`` takes a ``pyarrow.RecordBatch`` of records of one partition, in order, with the
    columns of the source. It returns a batch with the sink's columns, a list of them, or ``None``.
    Without a sink it returns ``None``: the function is the sink. ``factory`` is an alternative: a
    function that returns a context manager, which each task enters to get the function, and leaves
    at its end. Both are pickled to executors.

    ``source`` and ``sink`` are the options of the format ``pyspark_kafka``. The checkpoint has the
    layout of Spark's, and its storage uses ``metadataStorageOptions`` of the source.
    ``epoch`` is how often offsets are logged, such as ``"1 second"``, the default; records do not
    wait for that.

    ``tasks`` is the number of Spark tasks, by default one for each partition as far as there are
    slots. A task reads several partitions. Without a session (``None``) the tasks are threads of
    this process. ``channel`` is how tasks reach the driver: ``socket`` (the default of a classic
    session), or ``directory``, files next to the checkpoint, where executors cannot connect to the
    driver (the default of Spark Connect). ``limits`` bound restarts and waits; ``epoch`` and
    ``tasks`` take precedence over its ``epoch_s`` and ``max_tasks``. ``listeners`` are called with
    the progress after epochs, about once a second: each is a ``ProgressListener``, a
    ``lag_listener``, or a function that takes an ``EpochProgress``.

    :raises DisallowedOptionError: if the operator of Spark forbids an option.
    :raises OptionsError: with all problems of the options.
    :raises MetadataLogError: if the checkpoint cannot be used.
    """
    problems: list[str] = []
    chosen_limits = _limits(problems, limits or ExecutionLimits(), epoch, tasks)
    policy = operator_policy(spark)
    options = _options(problems, policy, source, sink, checkpointLocation)
    chosen = _factory(problems, function, factory)
    problems += _channel_problems(channel, has_session=spark is not None)
    if problems or options is None or chosen is None:
        raise OptionsError(problems)
    plan = QueryPlan(
        *options,
        StoragePath(checkpointLocation, lower(source).get(_STORAGE_OPTIONS, "{}")),
        chosen,
        chosen_limits,
        name=name,
        listeners=listeners,
    )
    if spark is None:
        return start_in_threads(plan)
    return start_on_spark(plan, spark, channel)


def _options(
    problems: list[str],
    policy: OptionPolicy,
    source: Mapping[str, str],
    sink: Mapping[str, str] | None,
    checkpoint: str,
) -> tuple[SourceOptions, SinkOptions | None] | None:
    """Parse the options of source and sink, and add their problems."""
    if not checkpoint.strip():
        problems.append("checkpointLocation must name a directory")
    parsed_source = _parsed(problems, parse_source_options, source, policy)
    if sink is None:
        return None if parsed_source is None else (parsed_source, None)
    given = {**sink, "checkpointLocation": checkpoint}
    parsed_sink = _parsed(problems, parse_sink_options, given, policy)
    if parsed_source is None or parsed_sink is None:
        return None
    problems += option_conflicts(parsed_source, parsed_sink)
    return parsed_source, parsed_sink


def _parsed(
    problems: list[str],
    parse: Callable[[Mapping[str, str], QueryKind, OptionPolicy], T],
    raw: Mapping[str, str],
    policy: OptionPolicy,
) -> T | None:
    try:
        return parse(raw, QueryKind.STREAM, policy)
    except OptionsError as error:
        problems += error.problems
        return None


def _factory(
    problems: list[str], function: RecordFunction | None, factory: FunctionFactory | None
) -> FunctionFactory | None:
    if (function is None) == (factory is None):
        problems.append("one of 'function' and 'factory' must be given, and not both")
        return None
    return factory if function is None else ConstantFunction(function)


def _channel_problems(channel: str | None, *, has_session: bool) -> Iterator[str]:
    if channel not in (None, SOCKET, DIRECTORY):
        yield f"channel must be '{SOCKET}' or '{DIRECTORY}', got {channel!r}"
    elif channel is not None and not has_session:
        yield (
            f"channel {channel!r} needs a Spark session: without one, tasks are threads of this "
            "process"
        )


def _limits(
    problems: list[str], limits: ExecutionLimits, epoch: str | None, tasks: int | None
) -> ExecutionLimits:
    if tasks is not None:
        if tasks < 1:
            problems.append(f"tasks must be at least 1, got {tasks}")
        limits = replace(limits, max_tasks=tasks)
    if epoch is not None:
        try:
            limits = replace(limits, epoch_s=interval_ms(epoch) / 1_000)
        except ValueError as error:
            problems.append(f"epoch: {error}")
    return limits
