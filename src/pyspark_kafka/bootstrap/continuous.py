"""Continuous queries, connected with their adapters, and the channels to their tasks."""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from ..application.continuous.epochs import EpochLog
from ..application.continuous.exclusion import WriterExclusion
from ..application.continuous.execution import ContinuousExecution
from ..application.continuous.progress import ProgressRecorder
from ..application.continuous.query import ContinuousQuery
from ..application.continuous.task import ContinuousTask
from ..domain.continuous.messages import TaskId
from ..domain.continuous.progress import QueryIdentity
from ..domain.continuous.settings import ContinuousSettings
from ..domain.errors import OptionsError
from ..domain.security.policy import check_parsed
from ..domain.values.dead_letter import TaskIdentity
from .container import (
    closing_clients,
    container_for,
    in_own_rack,
    metadata_log_at,
    require_stream_client,
    short_attempts,
    sink_container_for,
)
from .option_policy import operator_policy, worker_environment
from .pool import POOL, freeze_gc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from ..domain.checkpoints.storage_path import StoragePath
    from ..domain.continuous.progress import EpochProgress
    from ..domain.continuous.settings import ExecutionLimits
    from ..domain.options.sink import SinkOptions
    from ..domain.options.source import SourceOptions
    from ..domain.values.typed_schema import TypedSchema
    from ..ports.continuous import (
        ChannelAddress,
        EpochChannel,
        FunctionFactory,
        RecordFunction,
        TaskChannel,
        TaskRunner,
    )
    from ..ports.lag import ProgressListener
    from .container import Container, SinkContainer


MAX_REPORT_S = 0.5
"""How long a task delays its reports, at most."""


@final
@dataclass(frozen=True, slots=True)
class ConstantFunction:
    """A factory of a function that needs no resources."""

    function: RecordFunction

    def __call__(self) -> AbstractContextManager[RecordFunction]:
        """Return the function, in a context that does nothing."""
        return nullcontext(self.function)


@final
@dataclass(frozen=True, slots=True)
class TaskProgram:
    """The program of a query's tasks; pickled to executors."""

    source: SourceOptions
    sink: SinkOptions | None
    settings: ContinuousSettings
    factory: FunctionFactory
    report_every_s: float
    address: ChannelAddress
    generation: int = 0
    make_container: Callable[[SourceOptions], Container] = container_for
    is_own_process: bool = True
    typed: TypedSchema | None = None
    query_id: str = ""

    def __call__(self, slot: int, attempt: str) -> None:
        """Run the task of a slot until it ends; raise as ``ContinuousTask.run``.

        :raises OptionsError: if the operator of this process does not allow an option.
        """
        if self.is_own_process:
            self._check_options()
        task = TaskId(self.generation, slot, attempt)
        with ExitStack() as stack:
            channel = stack.enter_context(closing(connect_task(self.address, task)))
            stack.enter_context(POOL.logins.remember(self.source))
            if self.sink is not None:
                stack.enter_context(POOL.logins.remember(self.sink))
            source = in_own_rack(self.source, self.make_container)
            container = stack.enter_context(closing_clients(self.make_container(source)))
            make_client = container.stream_client(self.sink, self.settings)
            client = stack.enter_context(closing(make_client))
            function = stack.enter_context(self.factory())
            typed = None
            if self.typed is not None:
                identity = TaskIdentity(self.query_id, str(slot))
                typed = container.typed_records(self.typed, identity)
            if self.is_own_process:
                freeze_gc()
            running = ContinuousTask(
                task,
                client,
                channel,
                function,
                self.source,
                sink=self.sink,
                report_every_s=self.report_every_s,
                typed=typed,
                encode=stack.enter_context(self._encoding()),
            )
            running.run(socket.gethostname(), os.getpid())

    @contextmanager
    def _encoding(self) -> Iterator[Callable[[pa.RecordBatch], pa.RecordBatch] | None]:
        """Yield the encoder of the rows for a sink that has formats."""
        if self.sink is None or not self.sink.values:
            yield None
            return
        with closing_clients(sink_container_for(self.sink)) as container:
            yield container.sink_encoding().encode

    def for_run(self, generation: int, first_epoch: int) -> TaskProgram:
        """Return the program of one generation of a run that began with an epoch."""
        settings = replace(self.settings, first_epoch=first_epoch)
        return replace(self, generation=generation, settings=settings)

    def _check_options(self) -> None:
        policy = operator_policy()
        check_parsed(self.source, policy)
        if self.sink is not None:
            check_parsed(self.sink, policy)


@final
@dataclass(frozen=True, slots=True)
class QueryPlan:
    """Everything that a continuous query needs to start."""

    source: SourceOptions
    sink: SinkOptions | None
    checkpoint: StoragePath
    factory: FunctionFactory
    limits: ExecutionLimits
    name: str | None = None
    listeners: Sequence[ProgressListener | Callable[[EpochProgress], None]] = ()
    make_container: Callable[[SourceOptions], Container] = container_for
    make_sink_container: Callable[[SinkOptions], SinkContainer] = sink_container_for


def start_query(
    plan: QueryPlan, runner: TaskRunner, channel: EpochChannel, *, is_own_process: bool
) -> ContinuousQuery:
    """Start a query whose tasks a runner runs; it closes the channel when it ends.

    :raises OptionsError: if the client does not support continuous queries, or the sink's delivery
        guarantee.
    :raises MetadataLogError: if the checkpoint cannot be used.
    """
    from ..adapters.checkpoints.files import query_id_of
    from ..adapters.system.logged import LoggingProgressListener

    with ExitStack() as stack:
        stack.callback(channel.close)
        identity = QueryIdentity(query_id_of(plan.checkpoint), str(uuid.uuid4()), plan.name)
        source = replace(
            plan.source,
            metadata_path=plan.source.metadata_path or plan.checkpoint.child("sources").child("0"),
        )
        container = stack.enter_context(closing_clients(plan.make_container(source)))
        require_stream_client(container.client(), source, plan.sink)
        task_source, typed = _with_schemas(container, plan.source)
        prefix = plan.sink.transactional_id_prefix if plan.sink else "pyspark-kafka"
        settings = ContinuousSettings(f"{prefix}-{identity.query_id}", identity.run_id)
        program = TaskProgram(
            task_source,
            _with_schema_files(plan.sink),
            settings,
            plan.factory,
            min(MAX_REPORT_S, plan.limits.epoch_s / 2),
            channel.address,
            make_container=plan.make_container,
            is_own_process=is_own_process,
            typed=typed,
            query_id=identity.query_id,
        )
        target = "foreach" if plan.sink is None else f"Kafka[{plan.sink.topic or 'column topic'}]"
        progress = ProgressRecorder(identity, target, (LoggingProgressListener(), *plan.listeners))
        offset_log = metadata_log_at(plan.checkpoint.child("offsets"))
        commit_log = metadata_log_at(plan.checkpoint.child("commits"))
        is_exactly_once = plan.sink is not None and plan.sink.is_exactly_once
        group_id = settings.group_id if is_exactly_once else None
        epoch_log = EpochLog(offset_log, commit_log, identity.run_id, group_id)
        exclusion = None
        if plan.sink is not None and is_exactly_once:
            made = plan.make_sink_container(plan.sink)
            sink = stack.enter_context(closing_clients(made))
            exclusion = WriterExclusion(sink.kafka_sink().hand_over, sink.transactions, settings)
        execution = ContinuousExecution(
            container.continuous_stream(),
            epoch_log,
            channel,
            runner,
            program.for_run,
            limits=plan.limits,
            events=container.events(),
            progress=progress,
            attempt=short_attempts(),
            exclusion=exclusion,
        )
        resources = stack.pop_all()
        return ContinuousQuery(identity, execution, progress, resources.close)


def _with_schema_files(sink: SinkOptions | None) -> SinkOptions | None:
    """Return the options of a sink with the schemas of files, which the driver reads."""
    if sink is None or not sink.values:
        return sink
    with closing_clients(sink_container_for(sink)) as container:
        return container.sink_encoding().prepare({})


def _with_schemas(
    container: Container, source: SourceOptions
) -> tuple[SourceOptions, TypedSchema | None]:
    """Return the options of tasks, with the columns that decoding needs, and the typed columns."""
    if not source.values:
        return source, None
    typed = container.value_schemas().settle()
    columns = typed.projection(has_letters=source.dead_letter_topic is not None)
    return replace(source, projection=columns), typed


def start_in_threads(plan: QueryPlan) -> ContinuousQuery:
    """Start a query whose tasks are threads of this process; raises as ``start_query``."""
    from ..adapters.continuous.threads import ThreadTaskRunner

    return start_query(plan, ThreadTaskRunner(), open_channel(MEMORY), is_own_process=False)


def start_on_spark(plan: QueryPlan, spark: SparkSession, channel: str | None) -> ContinuousQuery:
    """Start a query that runs as tasks of a Spark job; raises as ``start_query``."""
    from ..adapters.spark.jobs import SparkTaskRunner

    return start_query(
        plan,
        SparkTaskRunner(spark, variables=worker_environment(spark)),
        _channel_for(spark, channel, plan.checkpoint),
        is_own_process=True,
    )


def _channel_for(spark: SparkSession, kind: str | None, checkpoint: StoragePath) -> EpochChannel:
    from ..adapters.spark.session import is_classic

    if kind == SOCKET and not is_classic(spark):
        problem = (
            "channel 'socket' needs a classic session: the tasks of a Spark Connect server cannot "
            "connect to its client. Set it to 'directory'"
        )
        raise OptionsError([problem])
    if kind == DIRECTORY or (kind is None and not is_classic(spark)):
        return open_channel(DIRECTORY, directory=checkpoint.child("channel"))
    if (spark.conf.get("spark.master") or "").startswith("local"):
        return open_channel(SOCKET)
    host = spark.conf.get("spark.driver.host")
    bind_address = spark.conf.get("spark.driver.bindAddress", host)
    return open_channel(SOCKET, bind_address=bind_address or "", advertised_host=host)


DIRECTORY: Final = "directory"
"""Files in a directory of a storage, for drivers that executors cannot reach."""

MEMORY: Final = "memory"
"""Queues, for tasks that are threads of the driver's process."""

SOCKET: Final = "socket"
"""TCP connections from the tasks to the driver."""


def open_channel(
    kind: str,
    *,
    bind_address: str = "127.0.0.1",
    advertised_host: str | None = None,
    directory: StoragePath | None = None,
) -> EpochChannel:
    """Return the driver's end of a new channel.

    ``bind_address`` is of this machine, and ``advertised_host`` is its name for executors; both are
    for the kind ``SOCKET``. ``directory`` is for the kind ``DIRECTORY``, which needs it.

    :raises OSError: if the address cannot be used.
    :raises MetadataLogError: if the directory cannot be written.
    :raises UnsupportedFeatureError: if its storage is not supported.
    :raises ValueError: if the kind is not known, or the directory is missing.
    """
    match kind:
        case "directory":
            from ..adapters.continuous.directory_channel import DirectoryEpochChannel

            if directory is None:
                raise ValueError("a channel of the kind 'directory' needs a directory")
            return DirectoryEpochChannel(directory)
        case "socket":
            from ..adapters.continuous.socket_channel import SocketEpochChannel

            return SocketEpochChannel(bind_address, advertised_host)
        case "memory":
            from ..adapters.continuous.threads import MemoryEpochChannel

            return MemoryEpochChannel()
        case _:
            raise _unknown(kind)


def connect_task(address: ChannelAddress, task: TaskId) -> TaskChannel:
    """Return a task's end of the channel at an address.

    :raises DriverLostError: if the driver cannot be reached, or does not hold the key.
    :raises ValueError: if the kind of the channel is not known.
    """
    match address.kind:
        case "directory":
            from ..adapters.continuous.directory_channel import DirectoryTaskChannel

            return DirectoryTaskChannel(address, task)
        case "socket":
            from ..adapters.continuous.socket_task_channel import SocketTaskChannel

            return SocketTaskChannel(address)
        case "memory":
            from ..adapters.continuous.threads import MemoryTaskChannel

            return MemoryTaskChannel(address)
        case kind:
            raise _unknown(kind)


def _unknown(kind: str) -> ValueError:
    return ValueError(f"the kind of an epoch channel is not known: {kind!r}")
