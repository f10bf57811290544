from dataclasses import replace
from typing import Final

from pyspark_kafka.domain.cluster.topics import TopicDescription
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.ports.cluster import ClusterDescriber
from pyspark_kafka.testing import ClusterDescriberContract as Suite

from .adapted_world import AdaptedWorld
from .adapter import Faults, PassesOn, suite_with


class Passing(PassesOn, ClusterDescriber):
    """Passes every call to another describer."""


def _suite(adapter: type[Passing]) -> type:
    return suite_with(Suite, world=lambda: AdaptedWorld("cluster_describer", adapter))


wrong: Final = Faults(Passing, _suite)


@wrong(Suite.test_every_partition_has_brokers, "describe_topics")
def describes_one_partition_of_each_topic(self, topics):
    return {
        name: replace(topic, partitions={0: topic.partitions[0]})
        for name, topic in self.inner.describe_topics(topics).items()
    }


@wrong(Suite.test_leaders_are_brokers, "brokers")
def returns_no_brokers(self):
    return []


@wrong(Suite.test_a_broker_without_a_rack_has_an_empty_one, "brokers")
def returns_the_null_of_the_protocol_as_a_rack(self):
    return [replace(each, rack=None) for each in self.inner.brokers()]


@wrong(Suite.test_a_selector_of_replicas_is_a_class_or_empty, "replica_selector")
def returns_the_text_of_a_null(self):
    return str(self.inner.replica_selector() or None)


@wrong(Suite.test_versions_of_apis_are_ranges, "api_versions")
def returns_the_last_version_first(self):
    return {0: (9, 0)}


@wrong(Suite.test_rights_on_a_new_transactional_id_are_known, "transactional_id_operations")
def returns_no_rights_on_ids_that_were_not_used(self, transactional_id):
    used = self.world.cluster.describe_transaction(transactional_id)
    return self.inner.transactional_id_operations(transactional_id) if used else frozenset()


@wrong(Suite.test_topics_that_do_not_exist_are_left_out, "describe_topics")
def describes_topics_that_do_not_exist_without_partitions(self, topics):
    return {**dict.fromkeys(topics, TopicDescription({})), **self.inner.describe_topics(topics)}


@wrong(Suite.test_no_topics_are_described_without_names, "describe_topics")
def describes_all_topics_if_none_is_named(self, topics):
    return self.inner.describe_topics(topics or self.world.cluster.topics())


@wrong(Suite.test_added_partitions_are_described, "describe_topics")
def does_not_ask_again_for_a_topic_that_it_has_described(self, topics):
    self.seen = {**self.inner.describe_topics(topics), **self.seen}
    return {topic: self.seen[topic] for topic in topics if topic in self.seen}


@wrong(Suite.test_a_user_without_limits_may_read_and_write)
class UnknownIsForbidden(Passing):
    """Returns no rights where the user has some."""

    def describe_topics(self, topics):
        return {
            name: replace(topic, operations=frozenset())
            for name, topic in self.inner.describe_topics(topics).items()
        }

    def group_operations(self, group_id):
        return frozenset()


@wrong(Suite.test_rights_on_a_new_group_are_known, "group_operations")
def fails_if_a_group_does_not_exist(self, group_id):
    if not self.world.cluster.committed(group_id):
        raise LookupError(group_id)
    return self.inner.group_operations(group_id)


wrong.drops_error(
    Suite.test_an_unreachable_cluster_is_an_error, "describe_topics", BrokerUnreachableError, {}
)
wrong.fails_when_closed_twice(Suite.test_closing_twice_is_allowed)
