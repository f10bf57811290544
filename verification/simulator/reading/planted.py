"""Faults that are planted in the product, and that the simulator has to find."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from kafka import errors as kafka_errors

from pyspark_kafka.adapters.kafka_format import record_blocks
from pyspark_kafka.adapters.kafka_format.record_decoder import RecordDecoder
from pyspark_kafka.adapters.kafka_python import (
    brokers,
    connections,
    fetcher,
    wire,
)
from pyspark_kafka.adapters.kafka_python.brokers import (
    Brokers,
    FetchedBatches,
    HeldData,
    PartitionCursor,
)
from pyspark_kafka.adapters.kafka_python.fetcher import Fetcher
from pyspark_kafka.application.reading.range_read import RangeRead
from pyspark_kafka.domain.reading import cursor, expected_ranges
from pyspark_kafka.domain.reading.cursor import Cursor, Step, TopicIdentity
from pyspark_kafka.domain.reading.expected_ranges import ExpectedRanges
from pyspark_kafka.domain.reading.leader_epochs import FetchedEpochs
from pyspark_kafka.domain.reading.near_replicas import NearReplicas
from pyspark_kafka.ports.continuous import PolledRecords

from ..engine.simulator import Change, always, nothing
from .planted_core import FOUND_BY_CORE, PLANTED_CORE

_NODE: Final[Any] = fetcher._Node
_REAL: Final[Mapping[str, Any]] = {
    "answered": Cursor.answered,
    "decode": RecordDecoder.decode,
    "take": FetchedBatches.take,
    "fetched_data": wire._fetched_data,
    "after_loss": RangeRead._after_loss,
}


def _end_of_the_fetch(self: Any) -> PolledRecords | None:
    polled = _REAL["take"](self)
    return polled and PolledRecords(polled.partition, polled.records, self.next_offset)


def _from_the_first_batch(self: Any, fetched: Any, from_offset: int, until_offset: int) -> Any:
    first = fetched.index.batches[0].base_offset if fetched.index.batches else from_offset
    return _REAL["decode"](self, fetched, min(first, from_offset), until_offset)


def _replicas_are_believed(self: Any, error: Any, diverging: Any, *rest: Any, **_: bool) -> Step:
    step: Step = _REAL["answered"](self, error, diverging, *rest, is_leader=True)
    return step


def _without_divergence(self: Any, error: Any, _: Any, *rest: Any, is_leader: bool) -> Step:
    step: Step = _REAL["answered"](self, error, None, *rest, is_leader=is_leader)
    return step


def _without_aborted(fields: Any, error_code: int, end_offset: int) -> Any:
    return _REAL["fetched_data"](fields, error_code, end_offset)._replace(aborted=())


def _of_any_topic(self: Any, position: Any) -> bool:
    return bool(position.offset == self.offset and position.leader_epoch >= self.leader_epoch)


def _of_any_leader(self: Any, position: Any) -> bool:
    return bool((position.offset, position.topic_id) == (self.offset, self.topic.topic_id))


def _responses_pile_up(self: Any) -> bool:
    return self.connection is not None and bool(self.connection.in_flight)


def _more_each_time(self: Any, is_there: Any) -> Any:
    """Name further ranges by each request, whatever is held."""
    found = {each.partition: each for each in reversed(tuple(self._expected))}
    names = (each for name, each in found.items() if name not in self._held and is_there(name))
    return islice(names, expected_ranges.MAX_TOGETHER)


def _held_whatever_its_position(self: Any, cursor: Any) -> Any:
    self.expected.begin(cursor.partition, cursor.offset)
    held = self.expected.take(cursor.partition)
    if held is not None:
        cursor.see_metadata(self.metadata)
    return held


def _not_copied(self: Any, response: Any, positions: Any, *, is_by_id: bool) -> None:
    for partition, position in positions.items():
        data = response.partitions.get(partition)
        if data is not None and data.error is kafka_errors.NoError:
            self.expected.hold(partition, HeldData(position, data, is_by_id))


def _skip_more(self: Any, rest: Any, start: int, next_offset: int, cause: Any) -> Any:
    left = _REAL["after_loss"](self, rest, start, next_offset, cause)
    return left.starting_at(min(left.from_offset + 1, left.until_offset))


def _rest_is_dropped(self: Any, rest: Any, start: int, _: int, cause: Any) -> Any:
    return _REAL["after_loss"](self, rest, start, rest.until_offset, cause)


PLANTED: Final[Mapping[str, tuple[Change, ...]]] = {
    "a partition is fetched elsewhere while its records are not decoded": (
        Change(_NODE, "add_fetched", lambda self, fetched: self.fetched.append(fetched)),
    ),
    "progress is where the response ends": (Change(FetchedBatches, "take", _end_of_the_fetch),),
    "the first batch is handed out from its start": (
        Change(RecordDecoder, "decode", _from_the_first_batch),
    ),
    "a replica's word counts as a leader's": (Change(Cursor, "answered", _replicas_are_believed),),
    "divergence is ignored": (Change(Cursor, "answered", _without_divergence),),
    "aborted transactions are ignored": (Change(wire, "_fetched_data", _without_aborted),),
    "no checksum is checked": (Change(record_blocks.RecordBlockReader, "check", nothing),),
    "a topic that was created again is not noticed": (
        Change(TopicIdentity, "is_recreated", False),
    ),
    "leases of replicas do not end": (Change(NearReplicas, "expire", always(())),),
    "the last epoch is not sent": (Change(FetchedEpochs, "last", -1),),
    "old leaders are not left": (Change(Fetcher, "_leave_old_leaders", nothing),),
    "records of an earlier assignment are handed out": (
        Change(Fetcher, "_is_current", always(True)),
    ),
    "a replica that fails is not left": (Change(NearReplicas, "fail", nothing),),
    "an answer of another topic of the same name is taken": (
        Change(PartitionCursor, "asks_for", _of_any_topic),
    ),
    "an answer of a former leader is taken": (Change(PartitionCursor, "asks_for", _of_any_leader),),
    "two brokers that lag are witnesses of a new topic": (Change(cursor, "_SOME_REFUSALS", 1),),
    "responses pile up while their records are not taken": (
        Change(_NODE, "is_awaited", property(_responses_pile_up)),
        Change(connections.ReceiveBuffer, "view", lambda _, size: connections.new_memory(size)),
    ),
    "each request names further ranges": (Change(ExpectedRanges, "next_on", _more_each_time),),
    "what is held of a range is taken at any position": (
        Change(Brokers, "take_held", _held_whatever_its_position),
    ),
    "what is held of a range is not copied": (Change(Brokers, "hold", _not_copied),),
    "a part of a batch is held": (Change(brokers, "_is_whole", always(True)),),
    "one more record than was lost is skipped": (Change(RangeRead, "_after_loss", _skip_more),),
    "the rest of a range is lost as well": (Change(RangeRead, "_after_loss", _rest_is_dropped),),
    **PLANTED_CORE,
}


FOUND_BY: Final[Mapping[str, int]] = {
    "a partition is fetched elsewhere while its records are not decoded": 832,
    "progress is where the response ends": 2,
    "the first batch is handed out from its start": 1,
    "a replica's word counts as a leader's": 262,
    "divergence is ignored": 50,
    "aborted transactions are ignored": 8,
    "no checksum is checked": 9,
    "a topic that was created again is not noticed": 28,
    "an answer of a former leader is taken": 5074062,
    "two brokers that lag are witnesses of a new topic": 3209945,
    "leases of replicas do not end": 427,
    "old leaders are not left": 16,
    "records of an earlier assignment are handed out": 33,
    "an answer of another topic of the same name is taken": 211432,
    "responses pile up while their records are not taken": 59,
    "each request names further ranges": 17,
    "what is held of a range is not copied": 11,
    "a part of a batch is held": 11,
    "one more record than was lost is skipped": 370,
    "the rest of a range is lost as well": 370,
    **FOUND_BY_CORE,
}
"""The seeds of schedules that find them."""
