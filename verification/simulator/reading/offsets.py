"""The client's fetcher of offsets: it asks the cluster, which takes time and may fail."""

from collections.abc import Callable, Collection, Mapping

from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import OffsetFetcher

from .faults import Fault
from .world import World


class SimulatedOffsets(OffsetFetcher):
    """Answers what is true in the moment of the answer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._earliest = PartitionOffsets()

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        self._ask()
        found = self._of(partitions, self._world.first)
        self._earliest = found
        return found

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        self._ask()
        found = self._of(partitions, self._world.last)
        for partition, earliest in self._earliest.items():
            if partition in found:
                told = self._world.ends_told.setdefault(partition, [])
                told.append((earliest, found[partition]))
        return found

    @staticmethod
    def _of(
        partitions: Collection[TopicPartition], offset_of: Callable[[TopicPartition], int | None]
    ) -> PartitionOffsets:
        found = ((each, offset_of(each)) for each in partitions)
        return PartitionOffsets({each: at for each, at in found if at is not None})

    def _ask(self) -> None:
        world = self._world
        world.scheduler.sleep(3)
        fault = world.decisions.one_of("offsets", "offsets", (Fault.SLOW, Fault.SILENT))
        if fault is not None:
            ms = fault.between(50, 2_000) if fault.kind is Fault.SLOW else 30_000
            left_ms = int(1_000 * world.time_left_s())
            world.scheduler.sleep(min(ms, left_ms))
            if ms >= left_ms:
                raise BrokerUnreachableError("kafka:9092", left_ms / 1_000, "no answer")

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        raise NotImplementedError

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        raise NotImplementedError

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        raise NotImplementedError

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Have nothing open."""
