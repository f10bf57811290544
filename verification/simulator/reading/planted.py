"""Faults that are planted in the product, and that the simulator has to find."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark_kafka.adapters.kafka_format import record_blocks
from pyspark_kafka.adapters.kafka_format.record_decoder import RecordDecoder
from pyspark_kafka.adapters.kafka_python import fetcher, wire
from pyspark_kafka.adapters.kafka_python.brokers import FetchedBatches, PartitionCursor
from pyspark_kafka.adapters.kafka_python.cluster_metadata import ClusterMetadata
from pyspark_kafka.adapters.kafka_python.connections import BrokerConnection
from pyspark_kafka.adapters.kafka_python.fetcher import Fetcher
from pyspark_kafka.domain.cluster.broker_choice import BrokerChoice
from pyspark_kafka.domain.reading.cursor import Cursor, Step, TopicIdentity
from pyspark_kafka.domain.reading.leader_epochs import FetchedEpochs
from pyspark_kafka.domain.reading.near_replicas import NearReplicas
from pyspark_kafka.ports.continuous import PolledRecords

from ..engine.simulator import Change

_NODE: Final[Any] = fetcher._Node
_REAL: Final[Mapping[str, Any]] = {
    "answered": Cursor.answered,
    "decode": RecordDecoder.decode,
    "take": FetchedBatches.take,
    "fetched_data": wire._fetched_data,
}


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _always(value: object) -> Callable[..., Any]:
    return lambda *_, **__: value


def _end_of_the_fetch(self: Any) -> PolledRecords | None:
    polled = _REAL["take"](self)
    return polled and PolledRecords(polled.partition, polled.records, self.next_offset)


def _from_the_first_batch(self: Any, fetched: Any, from_offset: int, until_offset: int) -> Any:
    first = fetched.index.batches[0].base_offset if fetched.index.batches else from_offset
    return _REAL["decode"](self, fetched, min(first, from_offset), until_offset)


def _replicas_are_believed(self: Any, error: Any, diverging: Any, broker: int, **_: bool) -> Step:
    step: Step = _REAL["answered"](self, error, diverging, broker, is_leader=True)
    return step


def _without_divergence(self: Any, error: Any, _: Any, broker: int, *, is_leader: bool) -> Step:
    step: Step = _REAL["answered"](self, error, None, broker, is_leader=is_leader)
    return step


def _without_aborted(fields: Any, error_code: int, end_offset: int) -> Any:
    return _REAL["fetched_data"](fields, error_code, end_offset)._replace(aborted=())


def _short_fill(self: Any, view: memoryview) -> bool:
    """Take whatever comes first for the whole."""
    try:
        return bool(self._socket.recv_into(view))
    except BlockingIOError:
        return False


def _of_this_offset(self: Any, position: Any) -> bool:
    return bool(position.offset == self.offset)


PLANTED: Final[Mapping[str, tuple[Change, ...]]] = {
    "a partition is fetched elsewhere while its records are not decoded": (
        Change(_NODE, "add_fetched", lambda self, fetched: self.fetched.append(fetched)),
    ),
    "metadata have no age": (Change(ClusterMetadata, "is_outdated", False),),
    "progress is where the response ends": (Change(FetchedBatches, "take", _end_of_the_fetch),),
    "the first batch is handed out from its start": (
        Change(RecordDecoder, "decode", _from_the_first_batch),
    ),
    "a replica's word counts as a leader's": (Change(Cursor, "answered", _replicas_are_believed),),
    "divergence is ignored": (Change(Cursor, "answered", _without_divergence),),
    "aborted transactions are ignored": (Change(wire, "_fetched_data", _without_aborted),),
    "no checksum is checked": (Change(record_blocks.RecordBlockReader, "check", _nothing),),
    "a topic that was created again is not noticed": (
        Change(TopicIdentity, "is_recreated", False),
    ),
    "leases of replicas do not end": (Change(NearReplicas, "expire", _always(())),),
    "the last epoch is not sent": (Change(FetchedEpochs, "last", -1),),
    "old leaders are not left": (Change(Fetcher, "_leave_old_leaders", _nothing),),
    "a broker that is cut off is asked again and again": (
        Change(BrokerChoice, "ask_last", _nothing),
    ),
    "records of an earlier assignment are handed out": (
        Change(Fetcher, "_is_current", _always(True)),
    ),
    "a replica that fails is not left": (Change(NearReplicas, "fail", _nothing),),
    "a request in flight is never overdue": (Change(BrokerConnection, "is_overdue", False),),
    "a part of a response is taken for all": (Change(BrokerConnection, "_fill", _short_fill),),
    "an answer of another topic of the same name is taken": (
        Change(PartitionCursor, "asks_for", _of_this_offset),
    ),
}


FOUND_BY: Final[Mapping[str, int]] = {
    "a partition is fetched elsewhere while its records are not decoded": 832,
    "metadata have no age": 16,
    "progress is where the response ends": 2,
    "the first batch is handed out from its start": 1,
    "a replica's word counts as a leader's": 262,
    "divergence is ignored": 50,
    "aborted transactions are ignored": 8,
    "no checksum is checked": 40,
    "a topic that was created again is not noticed": 28,
    "leases of replicas do not end": 427,
    "the last epoch is not sent": 1181,
    "old leaders are not left": 16,
    "a broker that is cut off is asked again and again": 16,
    "records of an earlier assignment are handed out": 33,
    "a replica that fails is not left": 952,
    "a request in flight is never overdue": 73,
    "a part of a response is taken for all": 159,
    "an answer of another topic of the same name is taken": 211432,
}
"""The seeds of schedules that find them."""
