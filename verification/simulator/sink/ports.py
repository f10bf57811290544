"""The ports of the sink, whose every call takes time and may fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.application.writing.sink_task import SinkTask
from pyspark_kafka.domain.errors import BrokerUnreachableError, MetadataLogError, PysparkKafkaError
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.group_seal import GroupOffset
from pyspark_kafka.domain.writing.transaction import (
    DeliveryStats,
    Transaction,
    TransactionDescription,
    TransactionState,
    short_digest,
)
from pyspark_kafka.ports.checkpoints import MetadataLog
from pyspark_kafka.ports.reading import SourceEvents
from pyspark_kafka.ports.writing import RecordWriter, Transactions

from ..engine.decisions import Fired
from ..engine.scheduler import Killed
from .faults import Fault

if TYPE_CHECKING:
    from pyspark_kafka.application.use_cases import SinkUseCases

    from .spark import Application
    from .world import World

T = TypeVar("T")

SINKS: Final = "sinks"
REQUEST_TIMEOUT_MS: Final = 30_000

_DELAYS: Final = (Fault.SLOW, Fault.STALL, Fault.WORKER_DIES, Fault.DRIVER_DIES)
_READS: Final = (*_DELAYS, Fault.LOST_REQUEST)
_LOG_WRITES: Final = (*_READS, Fault.LOST_ANSWER, Fault.LATE)
_WRITES: Final = (*_LOG_WRITES, Fault.TWICE)


class StorageError(MetadataLogError):
    """The storage did not answer in time."""


class Calls:
    """Lets calls of an application's processes take effect, or not."""

    def __init__(
        self, world: World, application: Application, error: Callable[[], PysparkKafkaError]
    ) -> None:
        self.world = world
        self.application = application
        self._error = error

    def __call__(
        self,
        call: str,
        subject: object,
        effect: Callable[[str], T],
        kinds: Sequence[Fault] = _READS,
    ) -> T:
        world, current = self.world, self.world.scheduler.current
        assert current is not None
        name = current.name
        fired = world.decisions.one_of(name, call, kinds)
        world.scheduler.sleep(world.decisions.between(name, 1, 20))
        if fired is None:
            return self._effect(name, call, subject, effect)
        world.tell(name, call, subject, fired.kind.value)
        late = fired.between(100, REQUEST_TIMEOUT_MS)
        if fired.kind in (Fault.WORKER_DIES, Fault.DRIVER_DIES):
            self._die(fired)
            if world.scheduler.is_killed:
                outcome = late % 3 if kinds is not _READS else 0
                if outcome:
                    self._later(late if outcome == 1 else 0, name, call, subject, effect)
                raise Killed
        elif fired.kind in (Fault.SLOW, Fault.STALL):
            longer = fired.between(1, 60) if fired.kind is Fault.STALL else 1
            world.scheduler.sleep(late * longer)
        elif fired.kind is not Fault.LOST_REQUEST:
            at_ms = 0 if fired.kind is Fault.LOST_ANSWER else late
            self._later(at_ms, name, call, subject, effect)
        if fired.kind in (Fault.LOST_REQUEST, Fault.LOST_ANSWER, Fault.LATE):
            world.scheduler.sleep(fired.between(0, late))
            raise self._error()
        return self._effect(name, call, subject, effect)

    def _die(self, fired: Fired) -> None:
        if fired.kind is Fault.DRIVER_DIES:
            self.application.die()
        else:
            self.world.scheduler.kill_current()

    def _later(
        self, delay_ms: int, name: str, call: str, subject: object, effect: Callable[[str], object]
    ) -> None:
        def take_effect() -> None:
            with suppress(PysparkKafkaError):
                self._effect(f"{name}{' (late)' if delay_ms else ''}", call, subject, effect)

        self.world.scheduler.at(delay_ms, take_effect)

    def _effect(self, name: str, call: str, subject: object, effect: Callable[[str], T]) -> T:
        try:
            result = effect(name)
        except PysparkKafkaError as error:
            self.world.tell(name, call, subject, type(error).__name__)
            raise
        self.world.tell(name, call, subject, result)
        return result


def _unreachable() -> PysparkKafkaError:
    return BrokerUnreachableError("memory", REQUEST_TIMEOUT_MS / 1000)


class SimulatedTransactions(Transactions):
    def __init__(self, calls: Calls) -> None:
        self._kafka = calls.world.kafka
        self._call = calls

    def begin(self, transactional_id: str) -> Transaction:
        return self._call(
            "begin", transactional_id, lambda by: self._kafka.begin(transactional_id, by), _WRITES
        )

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        names = list(transactional_ids)
        return self._call("describe", names, lambda by: self._kafka.describe(names, by))

    def find(self, prefix: str, state: TransactionState) -> Mapping[str, TransactionDescription]:
        return self._call("find", prefix, lambda _: self._kafka.find(prefix, state))

    def commit(self, transaction: Transaction) -> None:
        self._call("commit", transaction, lambda by: self._kafka.commit(transaction, by), _WRITES)

    def abort(self, transaction: Transaction) -> None:
        self._call("abort", transaction, lambda by: self._kafka.abort(transaction, by), _WRITES)

    def committed(
        self, group_id: str, partitions: Collection[TopicPartition], *, is_stable: bool = True
    ) -> Mapping[TopicPartition, GroupOffset]:
        raise NotImplementedError

    def commit_offset(
        self,
        transaction: Transaction,
        group_id: str,
        partition: TopicPartition,
        offset: GroupOffset,
    ) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing: there is no connection."""


class SimulatedWriter(RecordWriter):
    """Writes values to the simulated Kafka; a fifth of the time of the adapter in memory."""

    def __init__(self, calls: Calls) -> None:
        self._kafka = calls.world.kafka
        self._call = calls
        self._transaction: Transaction | None = None
        self._records = 0

    def join_transaction(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:  # noqa: ARG002
        values = [each or b"" for each in batch.column("value").to_pylist()]
        transaction = self._transaction
        assert transaction is not None
        # Nothing is written twice: producers number their records.
        self._call("write", values, lambda _: self._kafka.write(transaction, values), _LOG_WRITES)
        self._records += batch.num_rows

    def flush(self) -> DeliveryStats:
        return DeliveryStats(self._records)

    def close(self) -> None:
        """Do nothing: there is no connection."""


class SimulatedLog(MetadataLog):
    def __init__(self, calls: Calls, log: MemoryMetadataLog, name: str) -> None:
        self._call = calls
        self._log = log
        self._name = name

    def __str__(self) -> str:
        return self._name

    def add(self, batch_id: int, metadata: bytes) -> bool:
        def add(by: str) -> bool:
            is_added = self._log.add(batch_id, metadata)
            if is_added and self._name == SINKS:
                checkpoint = self._call.application.checkpoint
                self._call.world.check_entry(batch_id, metadata, checkpoint, by)
            return is_added

        return self._call("add", (batch_id, metadata), add, _LOG_WRITES)

    def get(self, batch_id: int) -> bytes | None:
        return self._call("get", batch_id, lambda _: self._log.get(batch_id))

    def latest(self) -> tuple[int, bytes] | None:
        return self._call("latest", self._name, lambda _: self._log.latest())

    def batch_ids(self) -> Sequence[int]:
        return self._call("batch_ids", self._name, lambda _: self._log.batch_ids())

    def purge(self, threshold: int) -> None:
        self._call("purge", threshold, lambda _: self._log.purge(threshold))


class _Events:
    def records_delivered(self, delivered: DeliveryStats) -> None:
        """Called with what a task has written."""


class SimulatedUseCases:
    """What Spark's writers need of ``UseCases``."""

    def __init__(self, world: World, application: Application) -> None:
        self._world = world
        self._application = application
        self._kafka = Calls(world, application, _unreachable)
        self._storage = Calls(
            world, application, lambda: StorageError("storage", "The storage did not answer")
        )
        self._transactions = SimulatedTransactions(self._kafka)

    @contextmanager
    def sink(self, options: SinkOptions) -> Iterator[SinkUseCases]:
        made = SimpleNamespace(
            kafka_sink=partial(self._kafka_sink, options),
            sink_task=partial(self._sink_task, options),
        )
        yield cast("SinkUseCases", made)

    def _kafka_sink(self, options: SinkOptions) -> KafkaSink:
        settings, checkpoint = self._world.settings, self._application.checkpoint
        is_readable = settings.is_log_in_checkpoint or settings.is_checkpoint_readable
        query_id = checkpoint.query_id if is_readable else None
        offsets = SimulatedLog(self._storage, checkpoint.offsets, "offsets")
        return KafkaSink(
            SimulatedLog(self._storage, checkpoint.sinks, SINKS),
            SinkCheckpoint(
                offsets if is_readable else None,
                None,
                lambda: query_id,
                has_sink_log=options.is_log_in_checkpoint,
            ),
            lambda: self._transactions,
            options,
            short_digest(checkpoint.place),
            lambda: self._world.scheduler.now_ms + self._application.skew_ms,
        )

    def _sink_task(self, options: SinkOptions) -> SinkTask:
        writer = SimulatedWriter(self._kafka)
        return SinkTask(
            writer,
            lambda: self._transactions,
            options,
            cast("SourceEvents", cast("Any", _Events())),
        )
