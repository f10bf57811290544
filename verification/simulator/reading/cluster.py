"""A cluster: what is true of it, and what each broker knows of that."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID

from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.decisions import Decisions, Numbers
from ..engine.scheduler import Scheduler
from . import batches
from .batches import ABORT, COMMIT, LEGACY, SHAPES, Batch
from .faults import Fault, ReadingSettings, Release
from .logs import Partition, Replica
from .messages import Node

FIRST_PORT: Final = 9_092
_NEXT_FETCH_MS: Final = 20


@dataclass(slots=True)
class Known:
    """A broker's knowledge of a partition."""

    partition: Partition
    leader: int
    epoch: int


@dataclass(slots=True)
class View:
    """A broker's knowledge of the cluster."""

    partitions: dict[TopicPartition, Known] = field(default_factory=dict)
    ids: dict[str, UUID] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()


@dataclass(slots=True, eq=False)
class Member:
    """A broker, as the cluster sees it."""

    number: int
    host: str
    rack: str
    name: str = ""
    """The name that it advertises instead of its address."""

    port: int = FIRST_PORT
    is_alive: bool = True
    is_cut_off: bool = False
    view: View = field(default_factory=View)

    @property
    def advertised(self) -> str:
        return self.name or self.host

    @property
    def is_connected(self) -> bool:
        return self.is_alive and not self.is_cut_off


class Cluster:
    """Elects leaders, replicates records, and informs brokers of changes."""

    def __init__(
        self, settings: ReadingSettings, decisions: Decisions[ReadingSettings], scheduler: Scheduler
    ) -> None:
        self.settings = settings
        self.members = [
            Member(
                number,
                f"10.0.0.{number + 1}",
                f"r{number % 2}",
                f"broker{number}" if settings.has_names else "",
            )
            for number in range(settings.brokers)
        ]
        self.topics: dict[str, list[Partition]] = {}
        self.incarnations: dict[TopicPartition, list[Partition]] = {}
        """All partitions that a name had, in order."""

        self.max_batch_bytes = 0
        self.refuses_logins = False
        self.on_written: list[Callable[[Partition], None]] = []
        self._decisions = decisions
        self._scheduler = scheduler
        self._numbers = Numbers(settings.seed, "log")
        self._batches = 0
        self._ids = 0
        for number in range(settings.topics):
            self.create(f"t{number}", settings.partitions)
        for member in self.members:
            self._tell(member)

    # What happens to topics

    def create(self, name: str, count: int) -> None:
        self._ids += 1
        topic_id = UUID(int=self._ids)
        self.topics[name] = [self._new_partition(name, number, topic_id) for number in range(count)]

    def delete(self, name: str) -> None:
        for partition in self.topics.pop(name):
            partition.is_deleted = True

    def partition(self, name: TopicPartition) -> Partition | None:
        """Return the partition that has a name now."""
        found = self.topics.get(name.topic, ())
        return found[name.partition] if name.partition < len(found) else None

    def all_partitions(self) -> list[Partition]:
        return [each for partitions in self.topics.values() for each in partitions]

    def _new_partition(self, topic: str, number: int, topic_id: UUID) -> Partition:
        nodes = [each.number for each in self.members]
        first = (number + self._ids) % len(nodes)
        count = min(len(nodes), 3)
        chosen = [(first + each) % len(nodes) for each in range(count)]
        name = TopicPartition(topic, number)
        partition = Partition(name, topic_id, {each: Replica(each) for each in chosen})
        partition.in_sync = list(chosen)
        leaders = [each for each in chosen if self.members[each].is_connected] or chosen
        self._appoint(partition, leaders[0])
        self.incarnations.setdefault(name, []).append(partition)
        return partition

    # Leaders and replicas

    def elect(self, partition: Partition) -> None:
        """Give a partition a leader that has all records, or none if there is none."""
        others = [
            each
            for each in partition.in_sync
            if self.members[each].is_connected and each != partition.leader
        ]
        if others:
            self._appoint(partition, others[self._numbers.between(0, len(others) - 1)])
            self.replicate(partition)
        elif partition.leader >= 0 and not self.members[partition.leader].is_connected:
            partition.leader = -1
            partition.epoch += 1
        self.publish()

    def appoint_last(self, partition: Partition) -> None:
        """Let the last leader of a partition lead again."""
        if self.members[partition.last_leader].is_connected:
            self._appoint(partition, partition.last_leader)
            self.replicate(partition)

    def return_leader(self, member: Member) -> None:
        """Give partitions without a leader the last one, which has come back."""
        for partition in self.all_partitions():
            if partition.leader < 0 and partition.last_leader == member.number:
                self.appoint_last(partition)
        self.publish()

    def elect_uncleanly(self, partition: Partition) -> bool:
        """Give a partition a leader that lacks its last records; return whether there is one."""
        log = partition.log
        ends = self._ends_without_transactions(log)
        others = [
            each
            for each in partition.replicas
            if each != partition.leader and self.members[each].is_connected
        ]
        if not ends or not others:
            return False
        end = ends[self._numbers.between(0, len(ends) - 1)]
        leader = partition.replicas[others[self._numbers.between(0, len(others) - 1)]]
        leader.follow(log)
        leader.truncate(end)
        partition.diverge(end)
        partition.in_sync = [leader.node]
        self._appoint(partition, leader.node)
        leader.high_watermark = leader.end
        self.publish()
        return True

    def _ends_without_transactions(self, log: Replica) -> list[int]:
        """Return where a log can end so that no transaction began before and ended after."""
        ends, begun = [], set[int]()
        for batch in log.batches:
            if not begun and log.start < batch.base_offset < log.high_watermark:
                ends.append(batch.base_offset)
            if batch.is_marker:
                begun.discard(batch.producer)
            elif batch.producer >= 0:
                begun.add(batch.producer)
        return ends

    def _appoint(self, partition: Partition, node: int) -> None:
        partition.leader = partition.last_leader = node
        partition.epoch += 1
        leader = partition.replicas[node]
        leader.is_behind = False
        leader.lead_in(partition.epoch, leader.end)

    def replicate(self, partition: Partition) -> None:
        """Let the replicas that can copy the leader's log; then what all have may be read."""
        if partition.leader < 0:
            return
        leader = partition.replicas[partition.leader]
        if not self.members[partition.leader].is_connected:
            return
        partition.in_sync = [leader.node]
        for replica in partition.replicas.values():
            if replica is not leader and self.copies(replica, partition):
                replica.follow(leader)
                partition.in_sync.append(replica.node)
        leader.high_watermark = leader.end
        self._scheduler.at(_NEXT_FETCH_MS, partial(self._spread_watermark, partition, leader))
        for action in self.on_written:
            action(partition)

    def _spread_watermark(self, partition: Partition, leader: Replica) -> None:
        """Let followers learn by their next fetch what all have."""
        if leader.node != partition.leader or not self.members[leader.node].is_connected:
            return
        for replica in partition.replicas.values():
            if replica is not leader and self.copies(replica, partition):
                replica.follow(leader)
        for action in self.on_written:
            action(partition)

    def copies(self, replica: Replica, partition: Partition) -> bool:
        """Return whether a replica copies what its leader writes: it has to know who that is."""
        member = self.members[replica.node]
        known = member.view.partitions.get(partition.name)
        is_told = known is not None and (known.partition, known.epoch) == (
            partition,
            partition.epoch,
        )
        return member.is_connected and not replica.is_behind and is_told

    def publish(self) -> None:
        """Let each broker that is connected learn of what has changed, some of them late."""
        for member in self.members:
            if member.is_connected:
                late = self._decisions.has(f"metadata of {member.number}", Fault.LATE_METADATA, 0.4)
                delay_ms = late.between(100, 4_000) if late else 5
                self._scheduler.at(delay_ms, partial(self._tell_connected, member))

    def _tell_connected(self, member: Member) -> None:
        if member.is_connected:
            self._tell(member)

    def _tell(self, member: Member) -> None:
        view = View()
        for name, partitions in self.topics.items():
            view.ids[name] = partitions[0].topic_id
            for each in partitions:
                view.partitions[each.name] = Known(each, each.leader, each.epoch)
        view.nodes = tuple(
            Node(each.number, each.advertised, each.port, each.rack)
            for each in self.members
            if each.is_connected or each is member
        )
        member.view = view
        for partition in self.all_partitions():
            if member.number in partition.replicas:
                self.replicate(partition)

    # What is written

    def write(self, partition: Partition) -> bool:
        """Append a batch to a partition's log; return whether it has a leader that takes it."""
        if partition.leader < 0 or not self.members[partition.leader].is_connected:
            return False
        log = partition.replicas[partition.leader]
        batch = self._new_batch(partition, log)
        log.append(batch)
        self.max_batch_bytes = max(self.max_batch_bytes, len(batch.data))
        partition.note_batch(batch)
        self.replicate(partition)
        return True

    def _new_batch(self, partition: Partition, log: Replica) -> Batch:
        numbers, settings = self._numbers, self.settings
        self._batches += 1
        number, end, epoch = self._batches, log.end, partition.epoch
        if settings.is_legacy and numbers.between(0, 2):
            magic, codec = LEGACY[numbers.between(0, len(LEGACY) - 1)]
            return batches.legacy_batch(number, end, numbers.between(1, 3), magic, codec)
        producer = -1
        if numbers.between(1, 10) <= settings.transactions:
            producer = numbers.between(1, 2)
            is_open = producer in log.open_transactions()
            if is_open and numbers.between(0, 1):
                kind = COMMIT if numbers.between(0, 2) else ABORT
                return batches.marker_batch(number, end, epoch, producer, kind)
        shape = SHAPES[numbers.between(0, len(SHAPES) - 1)]
        codecs = batches.codecs()
        codec = codecs[numbers.between(0, len(codecs) - 1)]
        return batches.data_batch(number, end, epoch, shape, codec, producer)

    def end_transactions(self, partition: Partition) -> None:
        """End what is open, so that everything that is committed can be read."""
        log = partition.log
        for producer in sorted(log.open_transactions()):
            self._batches += 1
            kind = (COMMIT, ABORT)[self._numbers.between(0, 1)]
            marker = batches.marker_batch(self._batches, log.end, partition.epoch, producer, kind)
            log.append(marker)
            partition.note_batch(marker)
        self.replicate(partition)

    @property
    def has_ids(self) -> bool:
        return self.settings.release is Release.WITH_IDS
