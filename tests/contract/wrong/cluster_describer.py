"""Describers that break a promise of ``ClusterDescriber``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.cluster.topics import Broker, PartitionDescription, TopicDescription
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.security.rights import Operation
from pyspark_kafka.ports.cluster import ClusterDescriber
from pyspark_kafka.testing import ClusterDescriberContract as Suite
from pyspark_kafka.testing import MemoryWorld

from .adapted_world import AdaptedWorld
from .adapter import PortFaults, suite_with, wrong_with

if TYPE_CHECKING:
    Described = Mapping[str, TopicDescription]


class Passing(ClusterDescriber):
    """Passes every call to another describer."""

    def __init__(self, describer: ClusterDescriber, world: MemoryWorld) -> None:
        self.describer = describer
        self.world = world

    def brokers(self) -> Sequence[Broker]:
        return self.describer.brokers()

    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        return self.describer.api_versions()

    def describe_topics(self, topics: Collection[str]) -> Described:
        return self.describer.describe_topics(topics)

    def transactional_id_operations(self, transactional_id: str) -> frozenset[Operation] | None:
        return self.describer.transactional_id_operations(transactional_id)

    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        return self.describer.group_operations(group_id)

    def close(self) -> None:
        self.describer.close()


class FirstPartition(Passing):
    """Describes one partition of each topic."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        return {
            name: replace(topic, partitions={0: topic.partitions[0]})
            for name, topic in super().describe_topics(topics).items()
        }


class FirstTopic(Passing):
    """Describes one topic of several."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        return dict(list(super().describe_topics(topics).items())[:1])


class OtherLeader(Passing):
    """Names a broker as leader that has no replica."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        wrong = PartitionDescription(7, frozenset({0}), frozenset({0}))
        return {
            name: replace(topic, partitions=dict.fromkeys(topic.partitions, wrong))
            for name, topic in super().describe_topics(topics).items()
        }


class NamesNoBroker(Passing):
    """Returns no brokers."""

    def brokers(self) -> Sequence[Broker]:
        return []


class NamesABrokerTwice(Passing):
    """Returns a broker once for each of its listeners."""

    def brokers(self) -> Sequence[Broker]:
        return [*super().brokers(), *super().brokers()]


class EndsBeforeTheStart(Passing):
    """Returns the last version first."""

    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        return {0: (9, 0)}


class NeedsATransaction(Passing):
    """Returns no rights on ids that were not used."""

    def transactional_id_operations(self, transactional_id: str) -> frozenset[Operation] | None:
        used = self.world.cluster.open_transactions(transactional_id)
        return super().transactional_id_operations(transactional_id) if used else frozenset()


class DescribesTheUnknown(Passing):
    """Describes topics that do not exist, without partitions."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        return {
            **dict.fromkeys(topics, TopicDescription({})),
            **super().describe_topics(topics),
        }


class CreatesTopics(Passing):
    """Creates topics that do not exist."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        found = super().describe_topics(topics)
        for topic in set(topics) - found.keys():
            self.world.cluster.create_topic(topic)
        return found


class NothingIsEverything(Passing):
    """Describes all topics if none is named."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        return super().describe_topics(topics or self.world.cluster.topics())


class Remembers(Passing):
    """Does not ask again for a topic that it has described."""

    def __init__(self, describer: ClusterDescriber, world: MemoryWorld) -> None:
        super().__init__(describer, world)
        self._known: dict[str, TopicDescription] = {}

    def describe_topics(self, topics: Collection[str]) -> Described:
        self._known = {**super().describe_topics(topics), **self._known}
        return {topic: self._known[topic] for topic in topics if topic in self._known}


class UnknownIsForbidden(Passing):
    """Returns no rights where the user has some."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        return {
            name: replace(topic, operations=frozenset())
            for name, topic in super().describe_topics(topics).items()
        }

    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        return frozenset()


class NeedsAGroup(Passing):
    """Fails if a group does not exist."""

    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        if not self.world.cluster.committed(group_id):
            raise LookupError(group_id)
        return super().group_operations(group_id)


class UnreachableIsEmpty(Passing):
    """Returns nothing if no broker answers."""

    def describe_topics(self, topics: Collection[str]) -> Described:
        with suppress(BrokerUnreachableError):
            return super().describe_topics(topics)
        return {}


class ClosesOnce(Passing):
    """Fails at the second call of close."""

    is_closed = False

    def close(self) -> None:
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True


def _suite(adapter: type[Passing]) -> type:
    return suite_with(Suite, world=lambda: AdaptedWorld("cluster_describer", adapter))


_wrong: Final = wrong_with(_suite)

_WRONG: Final = (
    *_wrong(Suite.test_every_partition_has_brokers, FirstPartition, FirstTopic, OtherLeader),
    *_wrong(Suite.test_leaders_are_brokers, NamesNoBroker, NamesABrokerTwice),
    *_wrong(Suite.test_versions_of_apis_are_ranges, EndsBeforeTheStart),
    *_wrong(Suite.test_rights_on_a_new_transactional_id_are_known, NeedsATransaction),
    *_wrong(Suite.test_topics_that_do_not_exist_are_left_out, DescribesTheUnknown, CreatesTopics),
    *_wrong(Suite.test_no_topics_are_described_without_names, NothingIsEverything),
    *_wrong(Suite.test_added_partitions_are_described, Remembers),
    *_wrong(Suite.test_a_user_without_limits_may_read_and_write, UnknownIsForbidden),
    *_wrong(Suite.test_rights_on_a_new_group_are_known, NeedsAGroup),
    *_wrong(Suite.test_an_unreachable_cluster_is_an_error, UnreachableIsEmpty),
    *_wrong(Suite.test_closing_twice_is_allowed, ClosesOnce),
)
FAULTS: Final = PortFaults(_suite(Passing), _WRONG)
