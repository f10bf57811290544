import re
from typing import Final

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.domain.errors import BrokerUnreachableError, UnknownTopicError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Assign, SubscribePattern
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import OffsetFetcher
from pyspark_kafka.testing import OffsetFetcherContract as Suite

from .adapted_world import AdaptedWorld
from .adapter import Faults, PassesOn, suite_with


class Passing(PassesOn, OffsetFetcher):
    """Passes every call to another fetcher."""


def _suite(adapter: type[Passing]) -> type:
    return suite_with(Suite, world=lambda: AdaptedWorld("offset_fetcher", adapter))


wrong: Final = Faults(Passing, _suite)


@wrong(Suite.test_assigned_partitions_that_do_not_exist_are_left_out, "partitions")
def returns_assigned_partitions_that_do_not_exist(self, subscription):
    if isinstance(subscription, Assign):
        return frozenset(subscription.partitions)
    return self.inner.partitions(subscription)


@wrong(Suite.test_a_subscription_has_all_partitions_of_its_topics, "partitions")
def does_not_return_the_last_partition_of_several(self, subscription):
    found = sorted(self.inner.partitions(subscription))
    return frozenset(found[:-1] or found)


@wrong(Suite.test_a_pattern_matches_anywhere_in_a_name, "partitions")
def matches_a_pattern_with_the_whole_name_only(self, subscription):
    found = self.inner.partitions(subscription)
    if isinstance(subscription, SubscribePattern):
        return frozenset(each for each in found if re.fullmatch(subscription.pattern, each.topic))
    return found


@wrong(Suite.test_a_pattern_does_not_match_internal_topics, "partitions")
def returns_internal_topics_that_a_pattern_matches(self, subscription):
    found = self.inner.partitions(subscription)
    internal = TopicPartition("__consumer_offsets", 0)
    if isinstance(subscription, SubscribePattern) and subscription.matches(internal.topic):
        return found | {internal}
    return found


@wrong(Suite.test_a_pattern_without_topics_has_no_partitions, "partitions")
def fails_if_no_topic_matches_a_pattern(self, subscription):
    found = self.inner.partitions(subscription)
    if isinstance(subscription, SubscribePattern) and not found:
        raise UnknownTopicError([subscription.pattern], "subscribePattern", "memory")
    return found


@wrong(Suite.test_added_partitions_are_seen, "partitions")
def returns_the_partitions_that_a_subscription_had_first(self, subscription):
    return self.seen.setdefault(subscription, self.inner.partitions(subscription))


@wrong(Suite.test_a_deleted_topic_is_gone, "partitions")
def sees_new_partitions_but_not_that_one_is_gone(self, subscription):
    known = self.seen.get(subscription, frozenset())
    try:
        self.seen[subscription] = known | self.inner.partitions(subscription)
    except UnknownTopicError:
        if not known:
            raise
    return self.seen[subscription]


@wrong(Suite.test_the_latest_offset_follows_what_is_written, "latest")
def returns_the_earliest_offset_for_the_latest(self, partitions):
    return self.inner.earliest(partitions)


@wrong(Suite.test_the_earliest_offset_follows_what_is_deleted, "earliest")
def returns_the_latest_offset_for_the_earliest(self, partitions):
    return self.inner.latest(partitions)


@wrong(Suite.test_partitions_that_do_not_exist_have_no_offsets, "latest")
def returns_0_for_partitions_that_do_not_exist(self, partitions):
    return PartitionOffsets({**dict.fromkeys(partitions, 0), **self.inner.latest(partitions)})


@wrong(Suite.test_a_topic_that_does_not_exist_has_no_offsets, "earliest")
def fails_if_none_of_the_partitions_exists(self, partitions):
    found = self.inner.earliest(partitions)
    if partitions and not found:
        raise UnknownTopicError(["any"], "subscribe", "memory")
    return found


@wrong(Suite.test_no_partitions_have_no_offsets, "committed")
def returns_the_offsets_of_all_partitions_if_none_is_asked_for(self, group_id, partitions):
    return self.inner.committed(group_id, partitions or self.world.cluster.committed(group_id))


@wrong(Suite.test_an_open_transaction_bounds_the_latest_offset, "latest")
def ignores_open_transactions(self, partitions):
    """Returns the log's end under ``read_committed``."""
    return MemoryOffsetFetcher(self.world.cluster, self.world.options()).latest(partitions)


@wrong(Suite.test_a_timestamp_finds_no_record_of_an_open_transaction, "for_timestamps")
def finds_records_of_open_transactions(self, timestamps):
    return MemoryOffsetFetcher(self.world.cluster, self.world.options()).for_timestamps(timestamps)


@wrong(Suite.test_each_partition_has_its_timestamp, "for_timestamps")
def takes_one_timestamp_for_every_partition(self, timestamps):
    return self.inner.for_timestamps(dict.fromkeys(timestamps, next(iter(timestamps.values()), 0)))


@wrong(Suite.test_a_timestamp_finds_the_first_record_that_is_not_older, "for_timestamps")
def leaves_out_a_partition_that_has_no_record_at_or_after_its_timestamp(self, timestamps):
    found = self.inner.for_timestamps(timestamps)
    return {partition: offset for partition, offset in found.items() if offset is not None}


@wrong(Suite.test_timestamps_need_not_ascend, "for_timestamps")
def finds_the_record_with_the_smallest_timestamp_that_is_not_before(self, timestamps):
    def nearest(partition: TopicPartition) -> int | None:
        records = self.world.cluster._log(partition).records
        later = [each for each in records if each.timestamp >= timestamps[partition]]
        return min(((each.timestamp, each.offset) for each in later), default=(0, None))[1]

    return {each: nearest(each) for each in self.inner.for_timestamps(timestamps)}


@wrong(Suite.test_a_timestamp_finds_no_deleted_record, "for_timestamps")
def counts_the_offset_of_a_timestamp_from_the_earliest_one(self, timestamps):
    starts = self.inner.earliest(timestamps)
    found = self.inner.for_timestamps(timestamps)
    return {
        partition: None if offset is None else offset - starts[partition]
        for partition, offset in found.items()
    }


@wrong(Suite.test_a_commit_changes_its_partitions_only, "commit")
def drops_the_groups_other_partitions_at_a_commit(self, group_id, offsets):
    self.world.cluster._groups.pop(group_id, None)
    self.inner.commit(group_id, offsets)


@wrong(Suite.test_a_commit_may_be_repeated_and_go_back, "commit")
def never_commits_a_smaller_offset(self, group_id, offsets):
    known = self.world.cluster.committed(group_id)
    self.inner.commit(
        group_id,
        PartitionOffsets((each, max(offsets[each], known.get(each, 0))) for each in offsets),
    )


@wrong(Suite.test_committed_offsets_of_a_group_are_returned)
class OneGroup(Passing):
    """Commits for one group, whichever is named."""

    def committed(self, group_id, partitions):
        return self.inner.committed("the group", partitions)

    def commit(self, group_id, offsets):
        self.inner.commit("the group", offsets)


@wrong(Suite.test_another_fetcher_sees_a_commit, "__init__")
def keeps_commits_to_itself(self, fetcher, world):
    Passing.__init__(self, MemoryOffsetFetcher(MemoryCluster(), world.options()), world)


wrong.drops_error(
    Suite.test_a_subscription_to_an_unknown_topic_names_it,
    "partitions",
    UnknownTopicError,
    frozenset(),
)
wrong.drops_error(
    Suite.test_an_unreachable_cluster_is_an_error, "partitions", BrokerUnreachableError, frozenset()
)
wrong.fails_when_closed_twice(Suite.test_closing_twice_is_allowed)
