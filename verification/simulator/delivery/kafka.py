"""A simulated topic: the logs of its partitions, and what their leaders know of a producer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError

from .faults import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .world import World

NO_OFFSET = -1001


class Appended(NamedTuple):
    """A batch that a leader remembers."""

    sequence: int
    records: int
    offset: int


class Answer(NamedTuple):
    """A leader's answer to a request to produce."""

    error: int
    offset: int = NO_OFFSET


@dataclass
class _Log:
    served_ms: int
    records: list[bytes] = field(default_factory=list)
    batches: dict[int, list[Appended]] = field(default_factory=dict)
    """By the producer's id."""


@dataclass
class _Topic:
    number: int
    logs: list[_Log]


class Kafka:
    """A cluster with one topic, which may be deleted and created again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._topics = 0
        self._acknowledged = set[tuple[int, int]]()
        self.topic: _Topic | None = None
        self.appended: set[bytes] = set()
        """All records that were ever in a log."""
        self.was_deleted = self.has_failed_first = False
        """Whether the topic was, and whether a request failed whose producer the leader had not
        acknowledged anything before."""

        self.create()

    def create(self) -> None:
        world = self._world
        self._topics += 1
        late = world.decisions.has("leaders", Fault.LATE_LEADER, 0.8)
        now_ms = world.scheduler.now_ms
        self.topic = _Topic(
            self._topics,
            [
                _Log(now_ms + (late.between(0, 400) if late else 0))
                for _ in range(world.settings.partitions)
            ],
        )
        world.tell("people", "create the topic", "", None)

    def delete(self) -> None:
        self.topic, self.was_deleted = None, True
        self._world.tell("people", "delete the topic", "", None)

    def error_of(self, partition: int) -> int:
        """Return the error of a request to the leader of a partition, 0 for none."""
        if self.topic is None:
            return KafkaError.UNKNOWN_TOPIC_OR_PART
        is_served = self._world.scheduler.now_ms >= self.topic.logs[partition].served_ms
        return 0 if is_served else KafkaError.NOT_LEADER_FOR_PARTITION

    def produce(self, producer: int, partition: int, first: int, values: Sequence[bytes]) -> Answer:
        """Append a batch whose first record has a sequence number, as a leader does."""
        answer = self._append(producer, partition, first, values)
        if answer.error:
            self.has_failed_first |= (producer, partition) not in self._acknowledged
        else:
            self._acknowledged.add((producer, partition))
        return answer

    def _append(self, producer: int, partition: int, first: int, values: Sequence[bytes]) -> Answer:
        world, topic = self._world, self.topic
        if error := self.error_of(partition):
            return Answer(error)
        assert topic is not None
        if world.decisions.has("produce", Fault.REFUSED, world.settings.rate):
            return Answer(KafkaError.NOT_LEADER_FOR_PARTITION)
        log = topic.logs[partition]
        known = log.batches.setdefault(producer, [])
        for each in known[-5:]:
            if each.sequence == first and each.records == len(values):
                return Answer(0, each.offset)
        # A leader that does not know the producer takes any number.
        if known and first != known[-1].sequence + known[-1].records:
            return Answer(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
        offset = len(log.records)
        known.append(Appended(first, len(values), offset))
        log.records.extend(values)
        self.appended.update(values)
        if world.decisions.has("produce", Fault.SLOW_REPLICAS, world.settings.rate):
            return Answer(KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return Answer(0, offset)
