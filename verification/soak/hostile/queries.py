"""Queries of this library in threads of this process, which live through all faults.

They do what Spark's driver and tasks do with the same use cases. A call that fails is made again,
with new clients, as a task is that Spark runs again.
"""

import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final
from uuid import uuid4

import numpy as np
from dependency_injector import providers

from pyspark_kafka.adapters.checkpoints.files import query_id_of
from pyspark_kafka.application.checkpoints.logs import CheckpointLogs
from pyspark_kafka.application.reading.micro_batch_execution import MicroBatchExecution
from pyspark_kafka.bootstrap.container import (
    Container,
    SinkContainer,
    container_for,
    in_own_rack,
    metadata_log_at,
    sink_container_for,
)
from pyspark_kafka.domain.checkpoints.entries import NO_PLAN, SinkPlan
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import SinkTaskId, WriteResult
from pyspark_kafka.ports.checkpoints import MetadataLog
from tests.slowness import bound_s

from ..driver import QueryPlan
from ..ledger import SOURCE, Ledger
from ..numbers import DIGITS, SoakError
from ..surrounded import Surrounded
from .waits import Waits

MAX_OFFSETS: Final = 20_000
"""Of a micro-batch: what gathers in a fault has to be caught up with."""

MAX_RANGE: Final = 2_000
"""How many numbers a batch reads."""

_VALUES: Final = Projection(("value",))
_PAUSE_S: Final = 0.1
_STOP_S: Final = bound_s(60)


class HostileQuery(ABC):
    """A thread that takes one step after another, even if earlier steps failed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waits = Waits()
        self.errors: Counter[str] = Counter()
        """How often a step has failed, by the error's condition."""
        self.last_error = ""
        self.tolerates_loss = False
        """Whether clients that are opened after an error continue behind a loss of data."""
        self._wrong: list[str] = []
        self._steps = 0
        self._is_to_stop = threading.Event()
        self._is_to_rest = threading.Event()
        self._rests = threading.Event()
        self._goes_on = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def step(self) -> None:
        """Do something once; raise what this library raises if it fails."""

    @abstractmethod
    def close_clients(self) -> None:
        """Close the clients, so that the next step has new ones."""

    def mark(self) -> Any:
        """Return a mark to which ``has_passed`` compares."""
        return self._steps

    def has_passed(self, mark: Any) -> bool:
        """Return whether a whole step was begun and ended since a mark."""
        return bool(self._steps > mark + 1)

    def has_gone_over(self) -> bool:
        """Return whether the query is at the beginning of a topic that was created again."""
        return True

    def told(self) -> str:
        return f"{self.name}: {self._steps} steps, {dict(self.errors)}, last {self.last_error!r}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after its step, which has to end."""
        self._is_to_stop.set()
        self._goes_on.set()
        self._thread.join(_STOP_S)
        if self._thread.is_alive():
            raise SoakError(f"{self.name} does not stop: {self.waits.longest()}")

    def rest(self) -> None:
        """Let the thread close its clients after its step, and wait for ``go_on``."""
        self._goes_on.clear()
        self._is_to_rest.set()

    def await_rest(self) -> None:
        if not self._rests.wait(_STOP_S):
            raise SoakError(f"{self.name} does not rest: {self.waits.longest()}")

    def go_on(self) -> None:
        self._is_to_rest.clear()
        self._rests.clear()
        self._goes_on.set()

    def take_wrong(self) -> list[str]:
        """Return what was wrong since the last call: untyped errors, and wrong answers."""
        wrong, self._wrong = self._wrong, []
        return wrong

    def begin_round(self) -> None:
        """Forget errors, waits and that a loss of data is tolerated."""
        self.tolerates_loss = False
        self.errors.clear()
        self.waits.forget()

    def _run(self) -> None:
        while not self._is_to_stop.is_set():
            try:
                self.step()
                self._steps += 1
            except PysparkKafkaError as error:
                self.last_error = str(error)
                self.errors[error.condition] += 1
                self._close()
            except Exception as error:  # noqa: BLE001  # it is reported after the round
                self._wrong.append(f"{self.name}: {type(error).__name__}: {error}")
                self._close()
            self._is_to_stop.wait(_PAUSE_S)
            if self._is_to_rest.is_set():
                self._rest()
        self._close()

    def _rest(self) -> None:
        self._close()
        self._rests.set()
        self._goes_on.wait()

    def _close(self) -> None:
        with self.waits.timed("close"):
            self.close_clients()


class MicroBatchQuery(HostileQuery):
    """Micro-batches from the numbers to a topic of the query's own, and offsets for a group.

    The checkpoint is like Spark's, on any storage.
    """

    def __init__(
        self, plan: QueryPlan, options: Mapping[str, str], checkpoint: StoragePath, ledger: Ledger
    ) -> None:
        super().__init__(plan.name)
        self._plan = plan
        self._reader = ledger.readers[plan]
        self._producer = ledger.producer
        self._id, self._run_id = query_id_of(checkpoint), str(uuid4())
        self._checkpoint = checkpoint
        self._source_options = parse_source_options(
            {
                **plan.source(options, SOURCE),
                **_polls(options),
                "maxOffsetsPerTrigger": str(MAX_OFFSETS),
                "metadataPath": checkpoint.child("sources/0").url,
                "metadataStorageOptions": checkpoint.storage_options,
                "commitOffsetsToGroup": plan.group,
                "fetchOffset.numRetries": "1",
            },
            QueryKind.STREAM,
        )
        sink = plan.sink(options, plan.name) | {
            "checkpointLocation": checkpoint.url,
            "metadataPath": checkpoint.url,
            "metadataStorageOptions": checkpoint.storage_options,
        }
        self._sink_options = parse_sink_options(sink, QueryKind.STREAM)
        self._driver: Container | None = None
        self._tasks: Container | None = None
        self._sink: SinkContainer | None = None
        self._execution: MicroBatchExecution[Sequence[OffsetRange]] | None = None

    def mark(self) -> int:
        """Return how many numbers are written."""
        return self._producer.count

    def has_passed(self, mark: int) -> bool:
        """Return whether newer numbers are in the output."""
        return self._reader.newest_of_all() >= mark

    def has_gone_over(self) -> bool:
        """Return whether the last batch ends where all partitions begin."""
        return not any(committed(self._checkpoint).values())

    def step(self) -> None:
        if self._execution is None:
            self._open()
        assert self._execution is not None
        self._execution.run_batch()

    def close_clients(self) -> None:
        opened, self._driver = (self._driver, self._tasks, self._sink), None
        self._tasks = self._sink = self._execution = None
        for container in opened:
            if container is not None:
                container.shutdown_resources()

    def _open(self) -> None:
        options = replace(self._source_options, fail_on_data_loss=not self.tolerates_loss)
        self._driver = timed_container(options, self.waits)
        self._tasks = timed_container(options, self.waits)
        self._sink = timed_sink_container(self._sink_options, self.waits)
        offsets, commits = _logs(self._checkpoint)
        source = self._driver.kafka_source(list)
        self._execution = MicroBatchExecution(source, offsets, commits, self._process)

    def _process(self, ranges: Sequence[OffsetRange], batch_id: int) -> None:
        """Write a batch as ``KafkaStreamWriter`` and its tasks do."""
        assert self._sink is not None
        if not self._plan.is_exactly_once:
            for task, one in enumerate(ranges):
                self._write(task, one, batch_id)
            return
        sink, written = self._sink.kafka_sink(), []
        plan = sink.recover()
        if batch_id > plan.committed_through:
            try:
                for task, one in enumerate(ranges):
                    written.append(self._write(task, one, batch_id, plan))
            except PysparkKafkaError:
                sink.abort(batch_id, [*written, None], self._id)
                raise
        sink.commit(batch_id, self._id, written, plan)

    def _write(
        self, task: int, one: OffsetRange, batch_id: int, plan: SinkPlan = NO_PLAN
    ) -> WriteResult:
        assert self._tasks is not None
        assert self._sink is not None
        attempt = SinkTaskId(self._id, self._run_id, batch_id, task, 0)
        prefix = self._sink_options.transactional_id_prefix
        is_exactly_once = self._plan.is_exactly_once
        transactional_id = (
            attempt.transactional_id(prefix, plan.log_id) if is_exactly_once else None
        )
        records = self._tasks.range_read().read(one, _VALUES)
        return self._sink.sink_task().write(records, transactional_id, plan.used_until_ms)


class ReadingQuery(HostileQuery):
    """Reads the topic of numbers, and compares what it finds with what the producer knows."""

    def __init__(
        self, plan: QueryPlan, options: Mapping[str, str], ledger: Ledger, chance: random.Random
    ) -> None:
        super().__init__(f"{self.kind}-{plan.name}")
        self._options = parse_source_options(
            plan.source(options, SOURCE) | _polls(options),
            QueryKind.STREAM if self.kind == "lag" else QueryKind.BATCH,
        )
        self._producer = ledger.producer
        self._chance = chance
        self._opened: Container | None = None

    kind: ClassVar[str]

    @property
    def _container(self) -> Container:
        self._opened = self._opened or timed_container(self._options, self.waits)
        return self._opened

    def close_clients(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.shutdown_resources()


class BatchQuery(ReadingQuery):
    """Reads closed ranges, and compares every number."""

    kind = "batch"

    def step(self) -> None:
        begun = self._producer.begun
        partition = self._chance.randrange(self._producer.partitions)
        offsets, numbers = self._producer.delivered(partition)
        if not len(offsets):
            return
        start = self._chance.randrange(len(offsets))
        end = self._chance.randrange(start, min(len(offsets), start + MAX_RANGE)) + 1
        one = OffsetRange(
            TopicPartition(SOURCE, partition), int(offsets[start]), int(offsets[end - 1]) + 1
        )
        batches = self._container.range_read().read(one, _VALUES)
        values = [value for batch in batches for value in batch["value"].to_pylist()]
        read = [int(value[:DIGITS]) for value in values if value is not None]
        expected = numbers[start:end].tolist()
        is_other = begun != self._producer.begun <= min(read, default=0)
        if not is_other and read != self._without_compacted(expected, read):
            raise SoakError(f"{one}: {_difference(read, expected)}")

    def _without_compacted(self, expected: Sequence[int], read: Sequence[int]) -> Sequence[int]:
        """Return the numbers of a range without those that were compacted and not read."""
        missing = np.array(sorted(set(expected) - set(read)), np.int64)
        if not len(missing) or not self._producer.is_compacted:
            return expected
        compacted = set(self._producer.compacted(missing).tolist())
        return [number for number in expected if number not in compacted]


class LagQuery(ReadingQuery):
    """Measures the lag of an imagined query."""

    kind = "lag"

    def step(self) -> None:
        changes = self._producer.changes
        partitions = range(self._producer.partitions)
        before = {one: self._ends(one) for one in partitions}
        consumed = {
            TopicPartition(SOURCE, one): self._chance.randrange(first, end + 1)
            for one, (first, end) in before.items()
        }
        measured = self._container.lag_meter().measure(PartitionOffsets(consumed))
        most = self._producer.max_end()
        lags = {lag.partition.partition: lag for lag in measured.partitions}
        if changes % 2 or self._producer.changes != changes:
            return
        # Others may have been added.
        if not lags.keys() >= before.keys():
            raise SoakError(f"lags of partitions {sorted(lags)}, not of {sorted(before)}")
        for one, (_, end) in before.items():
            lag = lags[one]
            start = consumed[lag.partition]
            # Compaction removes every second number.
            least = (end - start) // 2 - 1 if self._producer.is_compacted else end - start
            if not least <= lag.lag <= most - start:
                facts = f"read to {start}, end was {end}, is at most {most}"
                raise SoakError(f"lag {lag.lag} of partition {one}: {facts}")

    def _ends(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition that is known, and its end."""
        offsets, _ = self._producer.delivered(partition)
        return (int(offsets[0]), int(offsets[-1]) + 1) if len(offsets) else (0, 0)


def _polls(options: Mapping[str, str]) -> dict[str, str]:
    """Return the time-out of reading records, which is the same as for all calls."""
    return {"kafkaConsumer.pollTimeoutMs": options["kafka.default.api.timeout.ms"]}


def committed(checkpoint: StoragePath) -> PartitionOffsets:
    """Return the end of the last batch that a checkpoint has as committed; none if none."""
    logs = CheckpointLogs(*_logs(checkpoint))
    last = logs.commits.latest()
    return PartitionOffsets() if last is None else logs.end(last[0])


def _logs(checkpoint: StoragePath) -> tuple[MetadataLog, MetadataLog]:
    offsets, commits = (metadata_log_at(checkpoint.child(name)) for name in ("offsets", "commits"))
    return offsets, commits


def timed_container(options: Any, waits: Waits) -> Container:
    options = in_own_rack(options)
    container = container_for(options)
    client = container.client()
    _override(container.offset_fetcher, client.offset_fetcher, options, waits)
    _override(container.record_reader, client.record_reader, options, waits)
    return container


def timed_sink_container(options: Any, waits: Waits) -> SinkContainer:
    container = sink_container_for(options)
    client = container.client()
    _override(container.record_writer, client.record_writer, options, waits)
    if options.is_exactly_once:
        _override(container.transactions, client.transactions, options, waits)
    return container


def _override(provider: Any, make: Any, options: Any, waits: Waits) -> None:
    name = type(options).__name__
    provider.override(providers.Resource(_timed, make, options, name, waits))


def _timed(
    make: Callable[[Any], Any], options: Any, name: str, waits: Waits
) -> Iterator[Surrounded]:
    with waits.timed(f"{name}: {make.__name__}"):
        adapter = make(options)
    kind = type(adapter).__name__
    yield Surrounded(adapter, lambda call, *_: waits.timed(f"{kind}.{call}"))
    adapter.close()


def _difference(read: Sequence[int], expected: Sequence[int]) -> str:
    missing, unexpected = set(expected) - set(read), set(read) - set(expected)
    repeated = len(read) - len(set(read))
    return (
        f"{len(read)} numbers, not {len(expected)}; missing {sorted(missing)[:3]}, "
        f"unexpected {sorted(unexpected)[:3]}, repeated {repeated}"
    )
