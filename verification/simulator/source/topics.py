"""Changes of topics while a query runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.topic_partition import TopicPartition

from .faults import TOPICS_CHANGE, Fault
from .kafka import FIRST_MS

if TYPE_CHECKING:
    from ..engine.decisions import Fired
    from .world import World

_MAX_PARTITIONS: Final = 4
_NAMES: Final = ("t1", "t2", "t3", "t4")


class Topics:
    """Changes topics, at random times."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._kafka = world.kafka
        self._missing: dict[str, int] = {}
        """The topics that are deleted, and how many partitions they had."""
        self.created: list[str] = []
        """Topics that were created since the beginning."""
        self._written = 0
        for number in range(world.settings.topics):
            self._kafka.create(_NAMES[number], world.settings.partitions)
        for _ in range(world.settings.records):
            self._append("first records")
        if fired := world.decisions.has("first records", Fault.RETENTION, 0.5):
            self._delete_records(fired)

    def run(self) -> None:
        """Change topics as often as the settings say."""
        world = self._world
        for _ in range(world.settings.changes):
            world.scheduler.sleep(world.decisions.between("pauses", 1, world.settings.pause_ms))
            self.change()

    def settle(self) -> None:
        """Create what is missing, and end what is open: a query can read everything."""
        for topic, partitions in self._missing.items():
            self._create(topic, partitions)
        self._missing = {}
        while self._kafka.has_open:
            self._kafka.end(commit=True)

    def change(self) -> None:
        """Let one thing happen."""
        fired: Fired | None = None
        for kind in TOPICS_CHANGE:
            fired = fired or self._world.decisions.has(f"people: {kind.name}", kind, 0.25)
        self._end_transaction()
        if fired is None:
            self._append_some()
        else:
            self._do(fired)

    def _do(self, fired: Fired) -> None:
        match fired.kind:
            case Fault.ADDED_PARTITIONS:
                self._add_partitions(fired)
            case Fault.RETENTION:
                self._delete_records(fired)
            case Fault.DELETED | Fault.RECREATED:
                self._delete(fired)
            case Fault.NEW_TOPIC:
                self._create_one()
            case Fault.TRANSACTIONS:
                self._kafka.begin()

    def _append_some(self) -> None:
        before = self._written
        for _ in range(self._world.decisions.between("records", 1, 5)):
            self._append("records")
        self._world.tell("write records", self._written - before)

    def _append(self, name: str) -> None:
        if not (parts := sorted(self._kafka.view(committed_only=False))):
            return
        between = self._world.decisions.between
        part = parts[between(name, 0, len(parts) - 1)]
        # Every fourth record is older than the one before it.
        late = 35 if between(name, 0, 3) == 0 else 0
        self._written += 1
        time = FIRST_MS + 10 * self._written - late
        self._kafka.append(part, time, is_open=between(name, 0, 1) == 1)

    def _end_transaction(self) -> None:
        if self._kafka.has_open and self._world.decisions.between("transactions", 0, 1):
            commits = self._world.decisions.between("transactions", 0, 1) == 1
            self._world.tell("commit" if commits else "abort", "a transaction")
            self._kafka.end(commit=commits)

    def _add_partitions(self, fired: Fired) -> None:
        if topics := sorted(self._kafka.cluster.topics().items()):
            topic, partitions = topics[fired.between(0, len(topics) - 1)]
            if partitions < _MAX_PARTITIONS:
                self._world.tell("add a partition to", topic)
                self._kafka.add_partitions(topic, partitions + 1)

    def _delete_records(self, fired: Fired) -> None:
        logs = sorted(self._kafka.view(committed_only=True).items())
        logs = [(part, log) for part, log in logs if log.start < log.end]
        if logs:
            part, log = logs[fired.between(0, len(logs) - 1)]
            before = fired.between(log.start + 1, log.end)
            self._world.tell("delete records before", f"{before} of {part}")
            self._kafka.delete_records(part, before)

    def _delete(self, fired: Fired) -> None:
        if topics := sorted(self._kafka.cluster.topics().items()):
            topic, partitions = topics[fired.between(0, len(topics) - 1)]
            self._world.tell("delete", topic)
            self._kafka.delete(topic)
            self._missing[topic] = partitions
            if fired.kind is Fault.RECREATED:
                self._missing[topic] = fired.between(1, _MAX_PARTITIONS)
                self._recreate(topic, fired)

    def _recreate(self, topic: str, fired: Fired) -> None:
        if fired.between(0, 1):
            self._world.scheduler.sleep(fired.between(1, 3_000))
        self._create(topic, self._missing.pop(topic))
        for number in range(fired.between(0, 8)):
            partitions = self._kafka.cluster.topics()[topic]
            time = FIRST_MS + 10 * self._written + number
            self._kafka.append(TopicPartition(topic, number % partitions), time)

    def _create_one(self) -> None:
        names = [name for name in _NAMES if name not in self._kafka.cluster.topics()]
        if names:
            self._create(names[0], self._missing.pop(names[0], 1))

    def _create(self, topic: str, partitions: int) -> None:
        self._world.tell("create", f"{topic} with {partitions} partitions")
        self._kafka.create(topic, partitions)
        self.created.append(topic)
