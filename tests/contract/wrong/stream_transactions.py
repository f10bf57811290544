"""Clients that break a promise of ``StreamClient`` about exactly-once delivery."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.writing.errors import ProducerFencedError
from pyspark_kafka.testing import StreamClientContract

from .record_writer import IgnoresTransactions
from .stream_client import Passing, wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from pyspark_kafka.adapters.memory.stream_client import MemoryStreamClient
    from pyspark_kafka.domain.topic_partition import TopicPartition
    from pyspark_kafka.ports.continuous import PolledRecords


class WritesOutside(Passing):
    """Writes outputs outside of transactions."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        if client._writer is not None:
            client._writer = IgnoresTransactions(client._writer)  # type: ignore[assignment]


class CommitsOffsetsFirst(Passing):
    """Commits the input's offset before the outputs."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        group_id = self.client._settings.group_id
        self.cluster.commit(group_id, {polled.partition: polled.next_offset})
        self.client.write(polled, outputs)


class CommitsOutputsFirst(Passing):
    """Commits the outputs before the input's offset."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self.client.write(polled, outputs)
        self.commit_outputs(polled.partition)

    def commit_outputs(self, partition: TopicPartition) -> None:
        """Commit a partition's transaction without offsets, and begin the next one."""
        self.cluster.commit_and_begin(self.client._transactions[partition], "no group", {})


class CommitsHalves(CommitsOutputsFirst):
    """Commits the outputs of a poll in two transactions."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self.client.write(polled, [batch.slice(0, 1) for batch in outputs])
        self.commit_outputs(polled.partition)
        self.client.write(polled, [batch.slice(1) for batch in outputs])


class _Settings:
    """Settings with another group, or other transactional ids."""

    def __init__(self, settings: Any, **others: Any) -> None:
        self._settings = settings
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return self._others[name] if name in self._others else getattr(self._settings, name)


class OtherGroup(Passing):
    """Commits the input's offsets for another group."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        client._settings = _Settings(client._settings, group_id="other")  # type: ignore[assignment]


class OneTransactionalId(Passing):
    """Takes one transactional id for all partitions."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        name = client._settings.group_id
        client._settings = _Settings(  # type: ignore[assignment]
            client._settings, transactional_id=lambda *_partition: name
        )


class OwnTransactionalIds(Passing):
    """Takes transactional ids that no other task has, and so fences none."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        client._settings = _Settings(  # type: ignore[assignment]
            client._settings,
            transactional_id=lambda topic, partition: f"{id(self)}-{topic}-{partition}",
        )


class OtherTransactionalIds(Passing):
    """Takes transactional ids that other clients do not take."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        settings = client._settings
        client._settings = _Settings(  # type: ignore[assignment]
            settings,
            transactional_id=lambda *partition: f"x-{settings.transactional_id(*partition)}",
        )


class FromTheGroup(Passing):
    """Reads from the group's offset where the given one is greater."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        return self.moved(self.client.assign(offsets))

    def moved(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Return the group's offsets, and read from those."""
        committed = self.cluster.committed(self.client._settings.group_id)
        chosen = {each: committed.get(each, offset) for each, offset in offsets.items()}
        self.client._offsets.update(chosen)
        return PartitionOffsets(chosen)


class FromTheGiven(Passing):
    """Reads from the given offset where the group's is greater."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self.client.assign(offsets)
        self.client._offsets.update(offsets)
        return offsets


class MovesToTheGroup(FromTheGroup):
    """Reads a partition that is assigned again from the group's offset."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        committed = dict(self.cluster.committed(self.client._settings.group_id))
        is_again = offsets.keys() <= self.client._offsets.keys()
        assigned = self.client.assign(offsets)
        if is_again:
            self.cluster.commit(self.client._settings.group_id, committed)
            return self.moved(assigned)
        return assigned


class KeepsTheGroup(Passing):
    """Does not commit the offset of a partition that is assigned again."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        committed = dict(self.cluster.committed(self.client._settings.group_id))
        assigned = self.client.assign(offsets)
        self.cluster.commit(self.client._settings.group_id, committed)
        return assigned


class FencesItself(Passing):
    """Fences itself where a partition is assigned again."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        before = dict(self.client._transactions)
        assigned = self.client.assign(offsets)
        self.client._transactions.update(before)
        return assigned


class DropsWhatWasWritten(Passing):
    """Drops outputs that are not committed where their partition is assigned again."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        for partition in self.dropped(offsets):
            self.client._uncommitted.pop(partition, None)
        return self.client.assign(offsets)

    def dropped(self, offsets: PartitionOffsets) -> Iterable[TopicPartition]:
        """Return the partitions whose outputs are dropped."""
        return offsets.keys()


class DropsWhatWasRevoked(DropsWhatWasWritten):
    """Drops outputs that are not committed where their partition was revoked in between."""

    def dropped(self, offsets: PartitionOffsets) -> Iterable[TopicPartition]:
        return offsets.keys() - self.client._offsets.keys()


class SwallowsFencing(Passing):
    """Does not say that another task took over."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        with suppress(ProducerFencedError):
            return super().poll(timeout_s, takes_records=takes_records)
        self.client._uncommitted.clear()
        return ()

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        with suppress(ProducerFencedError):
            self.client.write(polled, outputs)


class CommitsTogether(Passing):
    """Commits when each partition has outputs."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        kept, uncommitted = {}, self.client._uncommitted
        if uncommitted.keys() != self.client._offsets.keys():
            kept, self.client._uncommitted = uncommitted, {}
        polled = super().poll(timeout_s, takes_records=takes_records)
        self.client._uncommitted.update(kept)
        return polled


class CommitsOutputsOnly(Passing):
    """Does not advance the group by records without outputs."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self.client.write(polled, outputs)
        if not outputs:
            for output in self.client._uncommitted.pop(polled.partition, ()):
                self.client._tracker.acknowledge(output, 1)


class NeedsRecords(CommitsOutputsOnly):
    """Does not advance the group by offsets without records."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        if polled.records is None:
            super().write(polled, outputs)
        else:
            self.client.write(polled, outputs)


_Suite = StreamClientContract

WRONG: Final = (
    *wrong(_Suite.test_acknowledged_outputs_are_visible, OtherGroup),
    *wrong(_Suite.test_outputs_are_written_in_transactions, WritesOutside),
    *wrong(_Suite.test_the_outputs_of_a_poll_become_visible_together, CommitsHalves),
    *wrong(
        _Suite.test_what_is_not_committed_is_never_visible, CommitsOffsetsFirst, CommitsOutputsFirst
    ),
    *wrong(_Suite.test_records_without_outputs_advance_the_group, CommitsOutputsOnly),
    *wrong(_Suite.test_offsets_without_records_advance_the_group, NeedsRecords),
    *wrong(_Suite.test_reading_starts_at_the_greater_offset, FromTheGroup, FromTheGiven),
    *wrong(_Suite.test_a_task_may_change_its_offset, MovesToTheGroup, KeepsTheGroup),
    *wrong(_Suite.test_a_task_whose_partition_was_taken_over_is_fenced, OwnTransactionalIds),
    *wrong(_Suite.test_a_task_is_fenced_with_uncommitted_outputs, SwallowsFencing),
    *wrong(_Suite.test_another_client_fences_by_the_transactional_id, OtherTransactionalIds),
    *wrong(_Suite.test_partitions_are_committed_independently, CommitsTogether),
    *wrong(
        _Suite.test_a_revoked_partition_is_taken_over_without_fencing_others, OneTransactionalId
    ),
    *wrong(_Suite.test_an_assigned_partition_can_be_assigned_again, FencesItself),
    *wrong(_Suite.test_what_is_written_is_committed_before_an_offset_changes, DropsWhatWasWritten),
    *wrong(
        _Suite.test_what_is_written_is_committed_before_a_revoked_partition_returns,
        DropsWhatWasRevoked,
    ),
)
