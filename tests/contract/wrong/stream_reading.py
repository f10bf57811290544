import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import OffsetOutOfRangeError, OversizedRecordError
from pyspark_kafka.ports.continuous import PolledRecords
from pyspark_kafka.testing import StreamClientContract

from .adapter import Faults
from .stream_client import Passing, suite


class _Uncommitted:
    """A cluster whose watermarks ignore ``committed_only``."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def watermarks(self, partition, **_named):
        return self._cluster.watermarks(partition, committed_only=False)


def _with_records(
    polled: PolledRecords, change: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> PolledRecords:
    records = polled.records
    return polled if records is None else replace(polled, records=change(records))


_Suite = StreamClientContract

wrong: Final = Faults(Passing, suite)


@wrong(_Suite.test_reading_starts_at_the_assigned_offset, "remade")
def loses_the_first_record_of_each_poll(self, polled):
    return [_with_records(polled, lambda records: records.slice(1))]


@wrong(_Suite.test_records_have_the_schema_of_the_projection, "remade")
def returns_a_column_more_than_the_projection_has(self, polled):
    return [_with_records(polled, lambda records: records.append_column("n", records["offset"]))]


@wrong(_Suite.test_offsets_without_visible_records_are_passed, "remade")
def returns_empty_batches_where_there_are_only_offsets_without_records(self, polled):
    empty = pa.RecordBatch.from_pydict({"offset": pa.array([], pa.int64())})
    return [replace(polled, records=empty if polled.records is None else polled.records)]


@wrong(_Suite.test_records_belong_to_the_caller, "remade")
def overwrites_the_records_of_the_previous_poll(self, polled):
    memory = self.seen.setdefault("memory", bytearray(64))

    def in_memory(records):
        values = records["value"]
        _, offsets, data = values.buffers()
        memory[: len(data)] = memoryview(data)
        shared = pa.py_buffer(memoryview(memory))
        copied = pa.Array.from_buffers(values.type, len(values), [None, offsets, shared])
        return records.set_column(records.schema.get_field_index("value"), "value", copied)

    return [_with_records(polled, in_memory)]


@wrong(_Suite.test_a_record_that_arrives_ends_a_poll, "poll")
def waits_for_its_time(self, timeout_s, *, takes_records=True):
    """Returns from a poll only when its time is up, also if records have come."""
    time.sleep(timeout_s)
    return Passing.poll(self, 0, takes_records=takes_records)


@wrong(_Suite.test_a_poll_without_records_ends_in_time, "poll")
def returns_from_a_poll_at_once(self, timeout_s, *, takes_records=True):
    return Passing.poll(self, timeout_s / 100, takes_records=takes_records)


@wrong(_Suite.test_a_poll_without_partitions_ends_in_time, "poll")
def returns_from_a_poll_at_once_if_it_has_no_partitions(self, timeout_s, *, takes_records=True):
    return (
        Passing.poll(self, timeout_s, takes_records=takes_records) if self.client._offsets else ()
    )


@wrong(_Suite.test_several_partitions_are_read, "assign")
def reads_the_partitions_of_one_topic_only(self, offsets):
    topic = min(offsets).topic
    self.client.assign(PartitionOffsets(each for each in offsets.items() if each[0].topic == topic))
    return offsets


@wrong(_Suite.test_partitions_are_assigned_while_others_are_read, "assign")
def reads_only_the_partitions_that_were_assigned_last(self, offsets):
    self.client.revoke(list(self.client._offsets))
    return self.client.assign(offsets)


@wrong(_Suite.test_an_assigned_partition_is_moved, "assign")
def reads_on_where_a_partition_is_assigned_again(self, offsets):
    before = dict(self.client._offsets)
    assigned = self.client.assign(offsets)
    self.client._offsets.update(before)
    return assigned


@wrong(_Suite.test_a_revoked_partition_can_be_assigned_again)
class ResumesRevoked(Passing):
    """Reads on where a partition was revoked, wherever it is assigned."""

    def revoke(self, partitions):
        self.seen = dict(self.client._offsets)
        self.client.revoke(partitions)

    def assign(self, offsets):
        assigned = self.client.assign(offsets)
        self.client._offsets.update(self.seen)
        return assigned


@wrong(_Suite.test_revoked_partitions_are_not_read, "revoke")
def reads_revoked_partitions(self, partitions):
    pass


@wrong(_Suite.test_open_transactions_are_waited_for, "__init__")
def returns_records_of_open_transactions_under_read_committed(self, client):
    Passing.__init__(self, client)
    client._cluster = _Uncommitted(client._cluster)


@wrong(_Suite.test_the_end_is_in_range, "poll")
def takes_the_end_of_the_log_for_out_of_range(self, timeout_s, *, takes_records=True):
    for partition, offset in self.client._offsets.items():
        found = self.cluster.watermarks(partition, committed_only=False)
        if found is not None and offset == found[1] > 0:
            raise OffsetOutOfRangeError(partition, offset, earliest=found[0], latest=found[1])
    return Passing.poll(self, timeout_s, takes_records=takes_records)


@wrong(_Suite.test_an_error_loses_no_records_of_other_partitions, "poll")
def loses_with_an_error(self, timeout_s, *, takes_records=True):
    """Loses the records that come with another partition's error."""
    try:
        return Passing.poll(self, timeout_s, takes_records=takes_records)
    except OffsetOutOfRangeError as error:
        for partition in self.client._offsets.keys() - {error.partition}:
            found = self.cluster.watermarks(partition, committed_only=False)
            self.client._offsets[partition] = found[1] if found else 0
        raise


@wrong(_Suite.test_an_error_of_a_revoked_partition_is_not_raised, "poll")
def raises_an_error_again_whether_its_partition_is_still_assigned_or_not(
    self, timeout_s, *, takes_records=True
):
    if self.seen:
        raise self.seen["error"]
    try:
        return Passing.poll(self, timeout_s, takes_records=takes_records)
    except OversizedRecordError as error:
        self.seen["error"] = error
        raise


@wrong(_Suite.test_a_recreated_topic_is_an_error, "poll")
def takes_records_of_a_new_topic_for_those_of_the_old_topic(self, timeout_s, *, takes_records=True):
    self.client._topic_ids = dict.fromkeys(self.client._topic_ids)
    return Passing.poll(self, timeout_s, takes_records=takes_records)


@wrong(_Suite.test_a_deleted_topic_returns_nothing, "poll")
def fails_if_a_topic_was_deleted(self, timeout_s, *, takes_records=True):
    for partition in self.client._offsets:
        if self.cluster.watermarks(partition, committed_only=False) is None:
            raise UnknownTopicError([partition.topic], "topic", "memory")
    return Passing.poll(self, timeout_s, takes_records=takes_records)


@wrong(_Suite.test_a_partition_may_be_added_later, "poll")
def forgets_partitions_that_do_not_exist(self, timeout_s, *, takes_records=True):
    for partition in list(self.client._offsets):
        if self.cluster.watermarks(partition, committed_only=False) is None:
            self.client.revoke([partition])
    return Passing.poll(self, timeout_s, takes_records=takes_records)


@wrong(_Suite.test_nothing_is_read_after_close, "close")
def reads_on_when_it_is_closed(self):
    pass


wrong.fails_when_closed_twice(_Suite.test_closing_twice_is_allowed)
