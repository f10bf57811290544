"""The ports of the sink."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.application.writing.sink_task import SinkTask
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
from pyspark_kafka.ports.checkpoints import EditableLog
from pyspark_kafka.ports.reading import SourceEvents
from pyspark_kafka.ports.writing import RecordWriter, Transactions

from .calls import LOG_WRITES, REQUEST_TIMEOUT_MS, WRITES, Calls, no_answer, unreachable

if TYPE_CHECKING:
    from pyspark_kafka.application.use_cases import SinkUseCases

    from .application import Application
    from .world import World

SINKS: Final = "sinks"

_POLL_MS: Final = 500


class SimulatedTransactions(Transactions):
    def __init__(self, calls: Calls) -> None:
        self._kafka = calls.world.kafka
        self._scheduler = calls.world.scheduler
        self._call = calls

    def begin(self, transactional_id: str) -> Transaction:
        while self._kafka.is_ending(transactional_id):  # CONCURRENT_TRANSACTIONS
            self._scheduler.sleep(_POLL_MS)
        return self._call(
            "begin", transactional_id, lambda by: self._kafka.begin(transactional_id, by), WRITES
        )

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        names = list(transactional_ids)
        return self._call("describe", names, lambda by: self._kafka.describe(names, by))

    def find(self, prefix: str, state: TransactionState) -> Mapping[str, TransactionDescription]:
        return self._call("find", prefix, lambda _: self._kafka.find(prefix, state))

    def commit(self, transaction: Transaction) -> None:
        self._call("commit", transaction, lambda by: self._kafka.commit(transaction, by), WRITES)

    def abort(self, transaction: Transaction) -> None:
        self._call("abort", transaction, lambda by: self._kafka.abort(transaction, by), WRITES)

    def committed(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None,
        *,
        is_stable: bool = True,
    ) -> Mapping[TopicPartition, GroupOffset]:
        until_ms = self._scheduler.now_ms + REQUEST_TIMEOUT_MS

        def read(by: str) -> Mapping[TopicPartition, GroupOffset] | None:
            asked = [(group_id, each) for each in partitions or ()]
            if is_stable and any(map(self._kafka.is_unstable, asked)):
                return None
            self._call.world.looked_ms[by] = self._scheduler.now_ms
            found = self._kafka.group(group_id)
            wanted = found.keys() if partitions is None else partitions
            return {each: found[each] for each in wanted if each in found}

        while (found := self._call("committed", group_id, read)) is None:
            if self._scheduler.now_ms > until_ms:
                raise unreachable()
            self._scheduler.sleep(_POLL_MS)
        return found

    def commit_offset(
        self,
        transaction: Transaction,
        group_id: str,
        partition: TopicPartition,
        offset: GroupOffset,
    ) -> None:
        def seal(by: str) -> None:
            self._kafka.add_offset(transaction, (group_id, partition), offset)
            self._kafka.commit_and_continue(transaction, by)

        self._call("seal", f"{partition} at {offset.offset}: {offset.metadata}", seal, LOG_WRITES)

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
        values = values_of(batch)
        transaction = self._transaction
        assert transaction is not None
        # Nothing is written twice: producers number their records.
        self._call("write", values, lambda _: self._kafka.write(transaction, values), LOG_WRITES)
        self._records += batch.num_rows

    def flush(self) -> DeliveryStats:
        return DeliveryStats(self._records)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def values_of(batch: pa.RecordBatch) -> list[bytes]:
    return [each or b"" for each in batch.column("value").to_pylist()]


class SimulatedLog(EditableLog):
    def __init__(self, calls: Calls, log: MemoryMetadataLog, name: str) -> None:
        self._call = calls
        self._log = log
        self._name = name

    def __str__(self) -> str:
        return self._name

    def add(self, batch_id: int, metadata: bytes) -> bool:
        def add(by: str) -> bool:
            is_added = self._log.add(batch_id, metadata)
            if is_added and "(late)" in by:
                self._call.world.late_entries.add((self._name, batch_id))
            if is_added and self._name == SINKS:
                checkpoint = self._call.application.checkpoint
                self._call.world.check_entry(batch_id, metadata, checkpoint, by)
            return is_added

        return self._call("add", (batch_id, metadata), add, LOG_WRITES)

    def get(self, batch_id: int) -> bytes | None:
        return self._call("get", batch_id, lambda _: self._log.get(batch_id))

    def latest(self) -> tuple[int, bytes] | None:
        return self._call("latest", self._name, lambda _: self._log.latest())

    def batch_ids(self) -> Sequence[int]:
        return self._call("batch_ids", self._name, lambda _: self._log.batch_ids())

    def purge(self, threshold: int) -> None:
        self._call("purge", threshold, lambda _: self._log.purge(threshold))

    def replace(self, batch_id: int, metadata: bytes) -> None:
        def replace(_: str) -> None:
            self._log.replace(batch_id, metadata)

        self._call("replace", (batch_id, metadata), replace, LOG_WRITES)

    def remove(self, batch_id: int) -> None:
        self._call("remove", batch_id, lambda _: self._log.remove(batch_id), LOG_WRITES)


class _Events:
    def records_delivered(self, delivered: DeliveryStats) -> None:
        """Called with what a task has written."""


class SimulatedUseCases:
    """The part of ``UseCases`` that Spark's writers need, and of containers that queries need."""

    def __init__(self, world: World, application: Application) -> None:
        self._world = world
        self._application = application
        self.kafka = Calls(world, application, unreachable)
        self.storage = Calls(world, application, no_answer)
        self.transactions = SimulatedTransactions(self.kafka)
        checkpoint = application.checkpoint
        self.offsets = SimulatedLog(self.storage, checkpoint.offsets, "offsets")
        self.commits = SimulatedLog(self.storage, checkpoint.commits, "commits")
        self.backups = SimulatedLog(self.storage, checkpoint.backups, "backups")
        self._sinks = SimulatedLog(self.storage, checkpoint.sinks, SINKS)

    def sink(self, options: SinkOptions) -> AbstractContextManager[SinkUseCases]:
        made = SimpleNamespace(
            kafka_sink=partial(self.kafka_sink, options),
            sink_task=partial(self._sink_task, options),
        )
        return nullcontext(cast("SinkUseCases", made))

    def kafka_sink(self, options: SinkOptions) -> KafkaSink:
        settings, checkpoint = self._world.settings, self._application.checkpoint
        is_readable = settings.is_log_in_checkpoint or settings.is_checkpoint_readable
        query_id = checkpoint.query_id if is_readable else None
        return KafkaSink(
            self._sinks,
            SinkCheckpoint(
                self.offsets if is_readable else None,
                self.backups if is_readable else None,
                lambda: query_id,
                has_sink_log=settings.is_log_in_checkpoint,
            ),
            lambda: self.transactions,
            options,
            short_digest(checkpoint.place),
            lambda: self._world.scheduler.now_ms + self._application.skew_ms,
        )

    def _sink_task(self, options: SinkOptions) -> SinkTask:
        writer = SimulatedWriter(self.kafka)
        return SinkTask(
            writer,
            lambda: self.transactions,
            options,
            cast("SourceEvents", cast("Any", _Events())),
        )
