"""Describers that break a promise of ``ClusterDescriber``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.cluster.topics import Broker, TopicDescription
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.security.rights import Operation
from pyspark_kafka.ports.cluster import ClusterDescriber
from pyspark_kafka.testing import ClusterDescriberContract as Suite
from pyspark_kafka.testing import MemoryWorld

from .adapted_world import AdaptedWorld
from .adapter import Faults, suite_with

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


def _suite(adapter: type[Passing]) -> type:
    return suite_with(Suite, world=lambda: AdaptedWorld("cluster_describer", adapter))


wrong: Final = Faults(Passing, _suite)


@wrong(Suite.test_every_partition_has_brokers, "describe_topics")
def describes_one_partition_of_each_topic(self, topics):
    return {
        name: replace(topic, partitions={0: topic.partitions[0]})
        for name, topic in self.describer.describe_topics(topics).items()
    }


@wrong(Suite.test_leaders_are_brokers, "brokers")
def returns_no_brokers(self):
    return []


@wrong(Suite.test_versions_of_apis_are_ranges, "api_versions")
def returns_the_last_version_first(self):
    return {0: (9, 0)}


@wrong(Suite.test_rights_on_a_new_transactional_id_are_known, "transactional_id_operations")
def returns_no_rights_on_ids_that_were_not_used(self, transactional_id):
    used = self.world.cluster.open_transactions(transactional_id)
    return self.describer.transactional_id_operations(transactional_id) if used else frozenset()


@wrong(Suite.test_topics_that_do_not_exist_are_left_out, "describe_topics")
def describes_topics_that_do_not_exist_without_partitions(self, topics):
    return {
        **dict.fromkeys(topics, TopicDescription({})),
        **self.describer.describe_topics(topics),
    }


@wrong(Suite.test_no_topics_are_described_without_names, "describe_topics")
def describes_all_topics_if_none_is_named(self, topics):
    return self.describer.describe_topics(topics or self.world.cluster.topics())


@wrong(Suite.test_added_partitions_are_described)
class Remembers(Passing):
    """Does not ask again for a topic that it has described."""

    def __init__(self, describer, world):
        super().__init__(describer, world)
        self._known: dict[str, TopicDescription] = {}

    def describe_topics(self, topics):
        self._known = {**super().describe_topics(topics), **self._known}
        return {topic: self._known[topic] for topic in topics if topic in self._known}


@wrong(Suite.test_a_user_without_limits_may_read_and_write)
class UnknownIsForbidden(Passing):
    """Returns no rights where the user has some."""

    def describe_topics(self, topics):
        return {
            name: replace(topic, operations=frozenset())
            for name, topic in super().describe_topics(topics).items()
        }

    def group_operations(self, group_id):
        return frozenset()


@wrong(Suite.test_rights_on_a_new_group_are_known, "group_operations")
def fails_if_a_group_does_not_exist(self, group_id):
    if not self.world.cluster.committed(group_id):
        raise LookupError(group_id)
    return self.describer.group_operations(group_id)


@wrong(Suite.test_an_unreachable_cluster_is_an_error, "describe_topics")
def returns_nothing_if_no_broker_answers(self, topics):
    with suppress(BrokerUnreachableError):
        return self.describer.describe_topics(topics)
    return {}


@wrong(Suite.test_closing_twice_is_allowed)
class ClosesOnce(Passing):
    """Fails at the second call of close."""

    is_closed = False

    def close(self):
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True
