"""A task of a continuous query, as the contract suites of its client need it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import pyarrow as pa

from ..domain.options.sink import SinkOptions
from ..domain.partition_offsets import PartitionOffsets
from ..domain.topic_partition import TopicPartition
from ..ports.clock import Deadline
from ..ports.continuous import PolledRecords, StreamClient
from .world import PATIENCE_S, World

Function: TypeAlias = Callable[[pa.RecordBatch], Sequence[pa.RecordBatch]]

LONG_S: Final = PATIENCE_S
"""A time-out of ``poll`` that a test never waits for."""

_POLL_S: Final = min(1.0, PATIENCE_S / 10)

SOON_S: Final = PATIENCE_S / 2
"""How soon something must happen that does not wait for ``LONG_S``."""


def no_outputs(_records: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
    """Return nothing."""
    return ()


def echo(records: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
    """Return the records for the same partition of the sink's topic."""
    return [records.select(["key", "value", "partition"])]


def stream_sink(world: World, topic: str | None = None, *, exactly_once: bool) -> SinkOptions:
    """Return the options of a sink, whose errors come soon."""
    options = {"kafka__max__block__ms": "1000"}
    if topic is not None:
        options["topic"] = topic
    if exactly_once:
        options |= {
            "deliveryGuarantee": "exactly-once",
            "checkpointLocation": f"memory://{world.fresh_name()}",
        }
    return world.sink_options(**options)


@final
class StreamTask:
    """Polls, writes the outputs of a function, and checks the invariants of every poll.

    ``read`` holds the rows of each partition, ``written`` and ``acknowledged`` offsets.
    """

    def __init__(self, client: StreamClient, function: Function = no_outputs) -> None:
        self.client = client
        self.read: dict[TopicPartition, list[dict[str, Any]]] = defaultdict(list)
        self.written: dict[TopicPartition, int] = {}
        self.acknowledged: dict[TopicPartition, int] = {}
        self._function = function
        self._next_offsets: dict[TopicPartition, int] = {}

    def assign(self, offsets: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """Assign partitions, perhaps again, and return where they are read from."""
        for partition in offsets:
            self.written.pop(partition, None)
            self.acknowledged.pop(partition, None)
        assigned = self.client.assign(PartitionOffsets(offsets))
        assert assigned.keys() == offsets.keys()
        self._next_offsets.update(assigned)
        return assigned

    def values(self, partition: TopicPartition) -> list[bytes]:
        """Return the values that were read of a partition."""
        return [row["value"] for row in self.read[partition]]

    def poll(self) -> Sequence[PolledRecords]:
        """Return the first records that come; they must be written."""
        deadline = Deadline.after(LONG_S)
        while not (polled := self.client.poll(_POLL_S)):
            assert not deadline.has_passed, "nothing was polled"
        return polled

    def write(self, polled: Sequence[PolledRecords]) -> None:
        """Write the function's outputs for polled records."""
        for each in polled:
            self._check(each)
            outputs = () if each.records is None else self._function(each.records)
            self.client.write(each, outputs)
            self.written[each.partition] = each.next_offset
        self._update_acknowledged()

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Poll and write until a condition is true, and fail if it is not in time."""
        deadline = Deadline.after(LONG_S)
        while not condition():
            assert not deadline.has_passed, (self.written, self.acknowledged)
            self.write(self.client.poll(_POLL_S))

    def read_to(self, ends: Mapping[TopicPartition, int]) -> None:
        """Poll and write until everything before these offsets has been passed, and no more."""
        self.run_until(lambda: all(self._next_offsets[each] >= end for each, end in ends.items()))
        assert {each: self._next_offsets[each] for each in ends} == ends

    def settle(self) -> None:
        """Poll and write until all that was written is acknowledged."""
        self.run_until(self.client.is_settled)
        self._update_acknowledged()
        assert self.acknowledged == self.written

    def process_to(self, ends: Mapping[TopicPartition, int]) -> None:
        """Read to these offsets, and poll and write until all that was written is acknowledged."""
        self.read_to(ends)
        self.settle()

    def _check(self, polled: PolledRecords) -> None:
        start = self._next_offsets[polled.partition]
        assert polled.next_offset > start
        self._next_offsets[polled.partition] = polled.next_offset
        if polled.records is not None:
            rows = polled.records.to_pylist()
            assert rows
            offsets = [row["offset"] for row in rows]
            assert offsets == sorted(set(offsets))
            assert start <= offsets[0]
            assert offsets[-1] < polled.next_offset
            self.read[polled.partition] += rows

    def _update_acknowledged(self) -> None:
        for partition, offset in self.client.acknowledged().items():
            assert self.acknowledged.get(partition, -1) < offset
            assert offset <= self.written.get(partition, -1)
            self.acknowledged[partition] = offset
