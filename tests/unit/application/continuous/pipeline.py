"""A continuous query over a cluster in memory, with tasks in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import final

import pyarrow as pa
from dependency_injector import providers

from pyspark_kafka.adapters.continuous.threads import ThreadTaskRunner
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.application.continuous.errors import UncertainEndError
from pyspark_kafka.application.continuous.query import ContinuousQuery
from pyspark_kafka.bootstrap.container import (
    Container,
    SinkContainer,
    container_for,
    metadata_log_at,
    sink_container_for,
)
from pyspark_kafka.bootstrap.continuous import (
    ConstantFunction,
    QueryPlan,
    start_in_threads,
    start_query,
)
from pyspark_kafka.domain.checkpoints.checkpoint_log import read_batch_end
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.settings import ExecutionLimits
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import EpochChannel, PolledRecords, RecordFunction, StreamClient
from pyspark_kafka.ports.lag import ProgressListener

FAST = ExecutionLimits(epoch_s=0.05, stop_timeout_s=10)


def keep(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.select(["key", "value", "partition"])


@final
class Gate:
    """Holds the thread that comes first until it is opened, for 30 seconds at most."""

    def __init__(self) -> None:
        self._reached, self._opened = threading.Event(), threading.Event()

    def hold(self) -> None:
        if not self._reached.is_set():
            self._reached.set()
            self._opened.wait(30)

    def await_reached(self) -> None:
        assert self._reached.wait(30)

    def open(self) -> None:
        self._opened.set()


def unreliable(client: StreamClient, pipeline: Pipeline) -> StreamClient:
    """Let a client lose its broker, and stand still before calls, as the pipeline says."""
    for name in ("assign", "write", "acknowledged"):
        vars(client)[name] = partial(_after_gate, getattr(client, name), pipeline.gates, name)
    poll = client.poll

    def poll_or_fail(timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        if pipeline.poll_failures:
            pipeline.poll_failures -= 1
            raise BrokerUnreachableError("memory", 1)
        return poll(timeout_s, takes_records=takes_records)

    vars(client)["poll"] = poll_or_fail
    return client


def _after_gate(
    call: Callable[..., object], gates: Mapping[str, Gate], name: str, *given: object
) -> object:
    if name in gates:
        gates[name].hold()
    return call(*given)


class Pipeline:
    """A query from the topic ``in`` to the topic ``out``."""

    def __init__(self, checkpoint: Path) -> None:
        self.cluster = MemoryCluster()
        self.cluster.create_topic("in", 2)
        self.cluster.create_topic("out", 9)
        self.checkpoint = checkpoint
        self.queries: list[ContinuousQuery] = []
        self.poll_failures = 0
        self.gates: dict[str, Gate] = {}
        """Where tasks stand still, by the method of their client."""

    def container(self, options: SourceOptions) -> Container:
        container = container_for(options)
        container.memory_cluster.override(self.cluster)
        client = container.client()
        assert client.stream_client is not None
        make = partial(client.stream_client, options)
        container.stream_client.override(
            providers.Callable(lambda *given: unreliable(make(*given), self))
        )
        return container

    def sink_container(self, options: SinkOptions) -> SinkContainer:
        container = sink_container_for(options)
        container.memory_cluster.override(self.cluster)
        return container

    def start(
        self,
        function: RecordFunction = keep,
        *,
        limits: ExecutionLimits = FAST,
        sink: dict[str, str] | None = None,
        listeners: Sequence[ProgressListener] = (),
        channel: EpochChannel | None = None,
        name: str | None = None,
        **source: str,
    ) -> ContinuousQuery:
        common = {"kafka.bootstrap.servers": "memory", "client": "memory"}
        topics = {} if "subscribePattern" in source else {"subscribe": "in"}
        given = {"startingOffsets": "earliest", "fetchOffset.retryIntervalMs": "9"}
        given |= {**topics, **common, **source}
        written = {"topic": "out", "checkpointLocation": str(self.checkpoint), **common}
        plan = QueryPlan(
            parse_source_options(given, QueryKind.STREAM),
            parse_sink_options({**written, **(sink or {})}, QueryKind.STREAM),
            StoragePath(str(self.checkpoint)),
            ConstantFunction(function),
            limits,
            name=name,
            listeners=listeners,
            make_container=self.container,
            make_sink_container=self.sink_container,
        )
        self.queries.append(
            start_in_threads(plan)
            if channel is None
            else start_query(plan, ThreadTaskRunner(), channel, is_own_process=False)
        )
        return self.queries[-1]

    def produce(self, start: int, end: int, topic: str = "in", partition: int = 0) -> None:
        for number in range(start, end):
            self.cluster.produce(topic, b"%d" % number, key=b"k", partition=partition)

    def written(self) -> list[int]:
        found = []
        for partition in range(9):
            records = self.cluster.fetch(
                TopicPartition("out", partition), 0, 10**6, committed_only=True, max_records=10**6
            )
            found += [int(record.value or b"") for record in records]
        return found

    def last_epoch(self) -> PartitionOffsets:
        log = metadata_log_at(StoragePath(str(self.checkpoint)).child("offsets"))
        latest = log.latest()
        assert latest is not None
        return read_batch_end(latest[1])

    def close(self) -> None:
        for gate in self.gates.values():
            gate.open()
        for query in self.queries:
            if query.isActive:
                with suppress(UncertainEndError):
                    query.stop()
