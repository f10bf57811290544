from contextlib import suppress
from typing import Any, Final

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.writing.errors import ProducerFencedError
from pyspark_kafka.domain.writing.group_seal import GroupSeal
from pyspark_kafka.testing import StreamClientContract

from .adapter import Faults
from .record_writer import writes_outside_of_the_transaction_that_it_has_joined
from .stream_client import Passing, suite


class _Settings:
    """Settings with another group or other transactional ids, or a cluster with other offsets."""

    def __init__(self, settings: Any, **others: Any) -> None:
        self._settings = settings
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return self._others[name] if name in self._others else getattr(self._settings, name)


_Suite = StreamClientContract

wrong: Final = Faults(Passing, suite)


@wrong(_Suite.test_outputs_are_written_in_transactions, "__init__")
def writes_outputs_outside_of_transactions(self, client):
    Passing.__init__(self, client)
    if client._writer is not None:
        client._writer = writes_outside_of_the_transaction_that_it_has_joined(client._writer)


@wrong(_Suite.test_what_is_not_committed_is_never_visible, "write")
def commits_the_inputs_offset_before_the_outputs(self, polled, outputs):
    group_id = self.client._settings.group_id
    self.cluster.commit(group_id, {polled.partition: polled.next_offset})
    self.client.write(polled, outputs)


@wrong(_Suite.test_what_is_not_committed_is_never_visible)
class CommitsOutputsFirst(Passing):
    """Commits the outputs before the input's offset."""

    def write(self, polled, outputs):
        self.client.write(polled, outputs)
        self.commit_outputs(polled.partition)

    def commit_outputs(self, partition):
        """Commit a partition's transaction without offsets, and begin the next one."""
        self.cluster.commit_and_begin(self.client._transactions[partition], "no group", {})


@wrong(_Suite.test_the_outputs_of_a_poll_become_visible_together)
class CommitsHalves(CommitsOutputsFirst):
    """Commits the outputs of a poll in two transactions."""

    def write(self, polled, outputs):
        self.client.write(polled, [batch.slice(0, 1) for batch in outputs])
        self.commit_outputs(polled.partition)
        self.client.write(polled, [batch.slice(1) for batch in outputs])


@wrong(_Suite.test_acknowledged_outputs_are_visible, "__init__")
def commits_the_inputs_offsets_for_another_group(self, client):
    Passing.__init__(self, client)
    client._settings = _Settings(client._settings, group_id="other")


@wrong(_Suite.test_a_revoked_partition_is_taken_over_without_fencing_others, "__init__")
def takes_one_transactional_id_for_all_partitions(self, client):
    Passing.__init__(self, client)
    name = client._settings.group_id
    client._settings = _Settings(client._settings, transactional_id=lambda *_partition: name)


@wrong(_Suite.test_a_task_whose_partition_was_taken_over_is_fenced, "__init__")
def takes_transactional_ids_that_no_other_task_has_and_so_fences_none(self, client):
    Passing.__init__(self, client)
    client._settings = _Settings(
        client._settings,
        transactional_id=lambda topic, partition: f"{id(self)}-{topic}-{partition}",
    )


@wrong(_Suite.test_another_client_fences_by_the_transactional_id, "__init__")
def takes_transactional_ids_that_other_clients_do_not_take(self, client):
    Passing.__init__(self, client)
    settings = client._settings
    client._settings = _Settings(
        settings, transactional_id=lambda *partition: f"x-{settings.transactional_id(*partition)}"
    )


@wrong(_Suite.test_a_sealed_group_refuses_the_runs_that_it_excludes, "__init__")
def does_not_look_for_a_seal(self, client):
    Passing.__init__(self, client)
    client._settings = _Settings(client._settings, require_unsealed=lambda _committed: None)


@wrong(_Suite.test_a_seal_of_one_partition_is_one_of_the_group, "assign")
def looks_for_the_seals_of_its_own_partitions(self, offsets):
    found = self.cluster.group_offsets(self.client._settings.group_id)
    own = {each: offset for each, offset in found.items() if each in offsets}
    self.client._cluster = _Settings(self.cluster, group_offsets=lambda _group_id: own)
    return self.client.assign(offsets)


@wrong(_Suite.test_a_sealed_group_refuses_the_runs_that_it_excludes)
class SealsAgain(Passing):
    """Commits the seal that it has found with its own offsets."""

    def poll(self, timeout_s, *, takes_records=True):
        group_id = self.client._settings.group_id
        before = self.cluster.group_offsets(group_id)
        polled = super().poll(timeout_s, takes_records=takes_records)
        for partition, offset in self.cluster.committed(group_id).items():
            text = before[partition].metadata if partition in before else ""
            self.cluster.commit(group_id, {partition: offset}, text and str(GroupSeal(batch_id=99)))
        return polled


@wrong(_Suite.test_reading_starts_at_the_greater_offset)
class FromTheGroup(Passing):
    """Reads from the group's offset where the given one is greater."""

    def assign(self, offsets):
        return self.moved(self.client.assign(offsets))

    def moved(self, offsets):
        """Return the group's offsets, and read from those."""
        committed = self.cluster.committed(self.client._settings.group_id)
        chosen = {each: committed.get(each, offset) for each, offset in offsets.items()}
        self.client._offsets.update(chosen)
        return PartitionOffsets(chosen)


@wrong(_Suite.test_a_task_may_change_its_offset)
class MovesToTheGroup(FromTheGroup):
    """Reads a partition that is assigned again from the group's offset."""

    def assign(self, offsets):
        committed = dict(self.cluster.committed(self.client._settings.group_id))
        is_again = offsets.keys() <= self.client._offsets.keys()
        assigned = self.client.assign(offsets)
        if is_again:
            self.cluster.commit(self.client._settings.group_id, committed)
            return self.moved(assigned)
        return assigned


@wrong(_Suite.test_an_assigned_partition_can_be_assigned_again, "assign")
def fences_itself_where_a_partition_is_assigned_again(self, offsets):
    before = dict(self.client._transactions)
    assigned = self.client.assign(offsets)
    self.client._transactions.update(before)
    return assigned


@wrong(_Suite.test_what_is_written_is_committed_before_an_offset_changes)
class DropsWhatWasWritten(Passing):
    """Drops outputs that are not committed where their partition is assigned again."""

    def assign(self, offsets):
        for partition in self.dropped(offsets):
            self.client._uncommitted.pop(partition, None)
        return self.client.assign(offsets)

    def dropped(self, offsets):
        """Return the partitions whose outputs are dropped."""
        return offsets.keys()


@wrong(_Suite.test_what_is_written_is_committed_before_a_revoked_partition_returns)
class DropsWhatWasRevoked(DropsWhatWasWritten):
    """Drops outputs that are not committed where their partition was revoked in between."""

    def dropped(self, offsets):
        return offsets.keys() - self.client._offsets.keys()


@wrong(_Suite.test_a_task_is_fenced_with_uncommitted_outputs)
class SwallowsFencing(Passing):
    """Does not say that another task took over."""

    def poll(self, timeout_s, *, takes_records=True):
        with suppress(ProducerFencedError):
            return super().poll(timeout_s, takes_records=takes_records)
        self.client._uncommitted.clear()
        return ()

    def write(self, polled, outputs):
        with suppress(ProducerFencedError):
            self.client.write(polled, outputs)


@wrong(_Suite.test_partitions_are_committed_independently, "poll")
def commits_when_each_partition_has_outputs(self, timeout_s, *, takes_records=True):
    kept, uncommitted = {}, self.client._uncommitted
    if uncommitted.keys() != self.client._offsets.keys():
        kept, self.client._uncommitted = uncommitted, {}
    polled = Passing.poll(self, timeout_s, takes_records=takes_records)
    self.client._uncommitted.update(kept)
    return polled


@wrong(_Suite.test_records_without_outputs_advance_the_group)
class CommitsOutputsOnly(Passing):
    """Does not advance the group by records without outputs."""

    def write(self, polled, outputs):
        self.client.write(polled, outputs)
        if not outputs:
            for output in self.client._uncommitted.pop(polled.partition, ()):
                self.client._tracker.acknowledge(output, 1)


@wrong(_Suite.test_offsets_without_records_advance_the_group)
class NeedsRecords(CommitsOutputsOnly):
    """Does not advance the group by offsets without records."""

    def write(self, polled, outputs):
        if polled.records is None:
            super().write(polled, outputs)
        else:
            self.client.write(polled, outputs)
