"""Fetchers that break a promise of ``OffsetFetcher``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.domain.errors import BrokerUnreachableError, UnknownTopicError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Assign, SubscribePattern, Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import OffsetFetcher
from pyspark_kafka.testing import MemoryWorld
from pyspark_kafka.testing import OffsetFetcherContract as Suite

from .adapted_world import AdaptedWorld
from .adapter import Faults, suite_with

if TYPE_CHECKING:
    Partitions = Collection[TopicPartition]
    Timestamps = Mapping[TopicPartition, int]
    Found = Mapping[TopicPartition, int | None]


class Passing(OffsetFetcher):
    """Passes every call to another fetcher."""

    def __init__(self, fetcher: OffsetFetcher, world: MemoryWorld) -> None:
        self.fetcher = fetcher
        self.world = world

    @property
    def cluster(self) -> MemoryCluster:
        """The cluster that the other fetcher reads from."""
        return self.world.cluster

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        return self.fetcher.partitions(subscription)

    def earliest(self, partitions: Partitions) -> PartitionOffsets:
        return self.fetcher.earliest(partitions)

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        return self.fetcher.latest(partitions)

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        return self.fetcher.for_timestamps(timestamps)

    def committed(self, group_id: str, partitions: Partitions) -> PartitionOffsets:
        return self.fetcher.committed(group_id, partitions)

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        self.fetcher.commit(group_id, offsets)

    def close(self) -> None:
        self.fetcher.close()


def _suite(adapter: type[Passing]) -> type:
    return suite_with(Suite, world=lambda: AdaptedWorld("offset_fetcher", adapter))


wrong: Final = Faults(Passing, _suite)


@wrong(Suite.test_a_subscription_to_an_unknown_topic_names_it, "partitions")
def returns_no_partitions_if_a_topic_does_not_exist(self, subscription):
    try:
        return self.fetcher.partitions(subscription)
    except UnknownTopicError:
        return frozenset()


@wrong(Suite.test_assigned_partitions_that_do_not_exist_are_left_out, "partitions")
def returns_assigned_partitions_that_do_not_exist(self, subscription):
    if isinstance(subscription, Assign):
        return frozenset(subscription.partitions)
    return self.fetcher.partitions(subscription)


@wrong(Suite.test_a_subscription_has_all_partitions_of_its_topics, "partitions")
def does_not_return_the_last_partition_of_several(self, subscription):
    found = sorted(self.fetcher.partitions(subscription))
    return frozenset(found[:-1] or found)


@wrong(Suite.test_a_pattern_matches_anywhere_in_a_name, "partitions")
def matches_a_pattern_with_the_whole_name_only(self, subscription):
    found = self.fetcher.partitions(subscription)
    if isinstance(subscription, SubscribePattern):
        return frozenset(each for each in found if re.fullmatch(subscription.pattern, each.topic))
    return found


@wrong(Suite.test_a_pattern_does_not_match_internal_topics, "partitions")
def returns_internal_topics_that_a_pattern_matches(self, subscription):
    found = self.fetcher.partitions(subscription)
    internal = TopicPartition("__consumer_offsets", 0)
    if isinstance(subscription, SubscribePattern) and subscription.matches(internal.topic):
        return found | {internal}
    return found


@wrong(Suite.test_a_pattern_without_topics_has_no_partitions, "partitions")
def fails_if_no_topic_matches_a_pattern(self, subscription):
    found = self.fetcher.partitions(subscription)
    if isinstance(subscription, SubscribePattern) and not found:
        raise UnknownTopicError([subscription.pattern], "subscribePattern", "memory")
    return found


@wrong(Suite.test_added_partitions_are_seen)
class RemembersPartitions(Passing):
    """Returns the partitions that a subscription had first."""

    def __init__(self, fetcher, world):
        super().__init__(fetcher, world)
        self._known: dict[Subscription, frozenset[TopicPartition]] = {}

    def partitions(self, subscription):
        if subscription not in self._known:
            self._known[subscription] = super().partitions(subscription)
        return self._known[subscription]


@wrong(Suite.test_a_deleted_topic_is_gone)
class RemembersDeletedTopics(RemembersPartitions):
    """Sees new partitions, but not that one is gone."""

    def partitions(self, subscription):
        known = self._known.get(subscription, frozenset())
        try:
            self._known[subscription] = known | self.fetcher.partitions(subscription)
        except UnknownTopicError:
            if not known:
                raise
        return self._known[subscription]


@wrong(Suite.test_the_latest_offset_follows_what_is_written, "latest")
def returns_the_earliest_offset_for_the_latest(self, partitions):
    return self.fetcher.earliest(partitions)


@wrong(Suite.test_the_earliest_offset_follows_what_is_deleted, "earliest")
def returns_the_latest_offset_for_the_earliest(self, partitions):
    return self.fetcher.latest(partitions)


@wrong(Suite.test_partitions_that_do_not_exist_have_no_offsets, "latest")
def returns_0_for_partitions_that_do_not_exist(self, partitions):
    return PartitionOffsets({**dict.fromkeys(partitions, 0), **self.fetcher.latest(partitions)})


@wrong(Suite.test_a_topic_that_does_not_exist_has_no_offsets, "earliest")
def fails_if_none_of_the_partitions_exists(self, partitions):
    found = self.fetcher.earliest(partitions)
    if partitions and not found:
        raise UnknownTopicError(["any"], "subscribe", "memory")
    return found


@wrong(Suite.test_no_partitions_have_no_offsets, "committed")
def returns_the_offsets_of_all_partitions_if_none_is_asked_for(self, group_id, partitions):
    return self.fetcher.committed(group_id, partitions or self.cluster.committed(group_id))


@wrong(Suite.test_an_open_transaction_bounds_the_latest_offset, "latest")
def ignores_open_transactions(self, partitions):
    """Returns the log's end under ``read_committed``."""
    return MemoryOffsetFetcher(self.cluster, self.world.options()).latest(partitions)


@wrong(Suite.test_each_partition_has_its_timestamp, "for_timestamps")
def takes_one_timestamp_for_every_partition(self, timestamps):
    return self.fetcher.for_timestamps(
        dict.fromkeys(timestamps, next(iter(timestamps.values()), 0))
    )


@wrong(Suite.test_a_timestamp_finds_the_first_record_that_is_not_older, "for_timestamps")
def leaves_out_a_partition_that_has_no_record_at_or_after_its_timestamp(self, timestamps):
    found = self.fetcher.for_timestamps(timestamps)
    return {partition: offset for partition, offset in found.items() if offset is not None}


@wrong(Suite.test_timestamps_need_not_ascend)
class NearestTimestamp(Passing):
    """Finds the record with the smallest timestamp that is not before."""

    def for_timestamps(self, timestamps):
        return {
            partition: self._nearest(partition, timestamps[partition])
            for partition in super().for_timestamps(timestamps)
        }

    def _nearest(self, partition, timestamp):
        records = self.cluster._log(partition).records
        return min(
            ((each.timestamp, each.offset) for each in records if each.timestamp >= timestamp),
            default=(0, None),
        )[1]


@wrong(Suite.test_a_timestamp_finds_no_deleted_record, "for_timestamps")
def counts_the_offset_of_a_timestamp_from_the_earliest_one(self, timestamps):
    starts = self.fetcher.earliest(timestamps)
    found = self.fetcher.for_timestamps(timestamps)
    return {
        partition: None if offset is None else offset - starts[partition]
        for partition, offset in found.items()
    }


@wrong(Suite.test_a_commit_changes_its_partitions_only, "commit")
def drops_the_groups_other_partitions_at_a_commit(self, group_id, offsets):
    self.cluster._groups.pop(group_id, None)
    self.fetcher.commit(group_id, offsets)


@wrong(Suite.test_a_commit_may_be_repeated_and_go_back, "commit")
def never_commits_a_smaller_offset(self, group_id, offsets):
    known = self.cluster.committed(group_id)
    self.fetcher.commit(
        group_id,
        PartitionOffsets((each, max(offsets[each], known.get(each, 0))) for each in offsets),
    )


@wrong(Suite.test_committed_offsets_of_a_group_are_returned)
class OneGroup(Passing):
    """Commits for one group, whichever is named."""

    def committed(self, group_id, partitions):
        return super().committed("the group", partitions)

    def commit(self, group_id, offsets):
        super().commit("the group", offsets)


@wrong(Suite.test_another_fetcher_sees_a_commit, "__init__")
def keeps_commits_to_itself(self, fetcher, world):
    Passing.__init__(self, MemoryOffsetFetcher(MemoryCluster(), world.options()), world)


@wrong(Suite.test_an_unreachable_cluster_is_an_error, "partitions")
def returns_no_partitions_if_no_broker_answers(self, subscription):
    try:
        return self.fetcher.partitions(subscription)
    except BrokerUnreachableError:
        return frozenset()


@wrong(Suite.test_closing_twice_is_allowed, "close")
def fails_when_it_is_closed_twice(self):
    self.fetcher.close()
    del self.fetcher
