"""Fetchers that break a promise of ``OffsetFetcher``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.domain.errors import BrokerUnreachableError, UnknownTopicError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import OffsetFetcher
from pyspark_kafka.testing import MemoryWorld
from pyspark_kafka.testing import OffsetFetcherContract as Suite

from .adapted_world import AdaptedWorld
from .adapter import PortFaults, suite_with, wrong_with

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


class UnknownIsEmpty(Passing):
    """Returns no partitions if a topic does not exist."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        try:
            return super().partitions(subscription)
        except UnknownTopicError:
            return frozenset()


class NamesAllTopics(Passing):
    """Names topics that exist in an error about those that do not."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        try:
            return super().partitions(subscription)
        except UnknownTopicError as error:
            assert isinstance(subscription, Subscribe)
            raise UnknownTopicError(subscription.topics, "subscribe", "memory") from error


class AssignsWhatIsMissing(Passing):
    """Returns assigned partitions that do not exist."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        if isinstance(subscription, Assign):
            return frozenset(subscription.partitions)
        return super().partitions(subscription)


class ForgetsAPartition(Passing):
    """Does not return the last partition of several."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        found = sorted(super().partitions(subscription))
        return frozenset(found[:-1] or found)


class MatchesWholeNames(Passing):
    """Matches a pattern with the whole name only."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        found = super().partitions(subscription)
        if isinstance(subscription, SubscribePattern):
            return frozenset(
                each for each in found if re.fullmatch(subscription.pattern, each.topic)
            )
        return found


class MatchesInternalTopics(Passing):
    """Returns internal topics that a pattern matches."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        found = super().partitions(subscription)
        internal = TopicPartition("__consumer_offsets", 0)
        if isinstance(subscription, SubscribePattern) and subscription.matches(internal.topic):
            return found | {internal}
        return found


class NeedsAMatch(Passing):
    """Fails if no topic matches a pattern."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        found = super().partitions(subscription)
        if isinstance(subscription, SubscribePattern) and not found:
            raise UnknownTopicError([subscription.pattern], "subscribePattern", "memory")
        return found


class RemembersPartitions(Passing):
    """Returns the partitions that a subscription had first."""

    def __init__(self, fetcher: OffsetFetcher, world: MemoryWorld) -> None:
        super().__init__(fetcher, world)
        self._known: dict[Subscription, frozenset[TopicPartition]] = {}

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        if subscription not in self._known:
            self._known[subscription] = super().partitions(subscription)
        return self._known[subscription]


class RemembersDeletedTopics(RemembersPartitions):
    """Sees new partitions, but not that one is gone."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        known = self._known.get(subscription, frozenset())
        try:
            self._known[subscription] = known | self.fetcher.partitions(subscription)
        except UnknownTopicError:
            if not known:
                raise
        return self._known[subscription]


class EndIsTheStart(Passing):
    """Returns the earliest offset for the latest."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        return super().earliest(partitions)


class StartIsTheEnd(Passing):
    """Returns the latest offset for the earliest."""

    def earliest(self, partitions: Partitions) -> PartitionOffsets:
        return super().latest(partitions)


class StartIsZero(Passing):
    """Does not know of deleted records."""

    def earliest(self, partitions: Partitions) -> PartitionOffsets:
        return PartitionOffsets(dict.fromkeys(super().earliest(partitions), 0))


class LastRecord(Passing):
    """Returns the offset of the last record for that after it."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        return PartitionOffsets(
            (partition, max(0, offset - 1))
            for partition, offset in super().latest(partitions).items()
        )


class OneEnd(Passing):
    """Returns the same latest offset for all partitions of a request."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        found = super().latest(partitions)
        return PartitionOffsets(dict.fromkeys(found, max(found.values(), default=0)))


class ForgetsAnEnd(Passing):
    """Leaves one partition of several out."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        found = super().latest(partitions)
        return PartitionOffsets(sorted(found.items())[: max(1, len(found) - 1)])


class RemembersEnds(Passing):
    """Returns the latest offset that a partition had first."""

    def __init__(self, fetcher: OffsetFetcher, world: MemoryWorld) -> None:
        super().__init__(fetcher, world)
        self._known: dict[TopicPartition, int] = {}

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        self._known = {**super().latest(partitions), **self._known}
        return PartitionOffsets(self._known).restrict(partitions)


class MissingIsZero(Passing):
    """Returns 0 for partitions that do not exist."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        return PartitionOffsets({**dict.fromkeys(partitions, 0), **super().latest(partitions)})


class MissingIsAnError(Passing):
    """Fails if none of the partitions exists."""

    def earliest(self, partitions: Partitions) -> PartitionOffsets:
        found = super().earliest(partitions)
        if partitions and not found:
            raise UnknownTopicError(["any"], "subscribe", "memory")
        return found


class NothingIsEverything(Passing):
    """Returns the offsets of all partitions if none is asked for."""

    def committed(self, group_id: str, partitions: Partitions) -> PartitionOffsets:
        return super().committed(group_id, partitions or self.cluster.committed(group_id))


class IgnoresOpenTransactions(Passing):
    """Returns the log's end under ``read_committed``."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        return MemoryOffsetFetcher(self.cluster, self.world.options()).latest(partitions)


class AlwaysReadsCommitted(Passing):
    """Returns the last stable offset under ``read_uncommitted``."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        options = self.world.options(kafka__isolation__level="read_committed")
        return MemoryOffsetFetcher(self.cluster, options).latest(partitions)


class OneTimestamp(Passing):
    """Takes one timestamp for every partition."""

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        return super().for_timestamps(dict.fromkeys(timestamps, next(iter(timestamps.values()), 0)))


class LeavesNoneOut(Passing):
    """Leaves out a partition that has no record at or after its timestamp."""

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        found = super().for_timestamps(timestamps)
        return {partition: offset for partition, offset in found.items() if offset is not None}


class NoneIsTheEnd(Passing):
    """Returns the latest offset if no record is at or after a timestamp."""

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        ends = super().latest(timestamps)
        found = super().for_timestamps(timestamps)
        return {
            partition: ends[partition] if offset is None else offset
            for partition, offset in found.items()
        }


class AfterTheTimestamp(Passing):
    """Does not find a record at its timestamp."""

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        return super().for_timestamps({each: time + 1 for each, time in timestamps.items()})


class BeforeTheTimestamp(Passing):
    """Finds the last record before a timestamp."""

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        found = super().for_timestamps(timestamps)
        return {partition: offset and offset - 1 for partition, offset in found.items()}


class NearestTimestamp(Passing):
    """Finds the record with the smallest timestamp that is not before."""

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        return {
            partition: self._nearest(partition, timestamps[partition])
            for partition in super().for_timestamps(timestamps)
        }

    def _nearest(self, partition: TopicPartition, timestamp: int) -> int | None:
        records = self.cluster._log(partition).records
        return min(
            ((each.timestamp, each.offset) for each in records if each.timestamp >= timestamp),
            default=(0, None),
        )[1]


class CountsFromTheStart(Passing):
    """Counts the offset of a timestamp from the earliest one."""

    def for_timestamps(self, timestamps: Timestamps) -> Found:
        starts = super().earliest(timestamps)
        found = super().for_timestamps(timestamps)
        return {
            partition: None if offset is None else offset - starts[partition]
            for partition, offset in found.items()
        }


class DropsOtherPartitions(Passing):
    """Drops the group's other partitions at a commit."""

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        self.cluster._groups.pop(group_id, None)
        super().commit(group_id, offsets)


class CommitsOnePartition(Passing):
    """Commits one partition of several."""

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        super().commit(group_id, PartitionOffsets(sorted(offsets.items())[:1]))


class CommitsForward(Passing):
    """Never commits a smaller offset."""

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        known = self.cluster.committed(group_id)
        super().commit(
            group_id,
            PartitionOffsets((each, max(offsets[each], known.get(each, 0))) for each in offsets),
        )


class CommitsOnce(Passing):
    """Fails if an offset is committed already."""

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        if offsets.items() <= self.cluster.committed(group_id).items():
            raise ValueError("committed already")
        super().commit(group_id, offsets)


class CommitsLastRecord(Passing):
    """Commits the last record's offset, and not the next one."""

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        super().commit(
            group_id, PartitionOffsets((each, max(0, offsets[each] - 1)) for each in offsets)
        )


class OneGroup(Passing):
    """Commits for one group, whichever is named."""

    def committed(self, group_id: str, partitions: Partitions) -> PartitionOffsets:
        return super().committed("the group", partitions)

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        super().commit("the group", offsets)


class AllOfTheGroup(Passing):
    """Returns all partitions of a group, whichever are asked for."""

    def committed(self, group_id: str, partitions: Partitions) -> PartitionOffsets:
        return PartitionOffsets(self.cluster.committed(group_id) if partitions else {})


class UncommittedIsZero(Passing):
    """Returns 0 for partitions that were not committed."""

    def committed(self, group_id: str, partitions: Partitions) -> PartitionOffsets:
        found = super().committed(group_id, partitions)
        return PartitionOffsets({**dict.fromkeys(partitions, 0), **found})


class KeepsCommits(Passing):
    """Keeps commits to itself."""

    def __init__(self, fetcher: OffsetFetcher, world: MemoryWorld) -> None:
        super().__init__(MemoryOffsetFetcher(MemoryCluster(), world.options()), world)


class RemembersCommits(Passing):
    """Does not look again for an offset that it has found."""

    def __init__(self, fetcher: OffsetFetcher, world: MemoryWorld) -> None:
        super().__init__(fetcher, world)
        self._known: dict[tuple[str, TopicPartition], int] = {}

    def committed(self, group_id: str, partitions: Partitions) -> PartitionOffsets:
        for partition, offset in super().committed(group_id, partitions).items():
            self._known.setdefault((group_id, partition), offset)
        return PartitionOffsets(
            (partition, self._known[group_id, partition])
            for partition in partitions
            if (group_id, partition) in self._known
        )


class UnreachableIsEmpty(Passing):
    """Returns no partitions if no broker answers."""

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        try:
            return super().partitions(subscription)
        except BrokerUnreachableError:
            return frozenset()


class UnreachableHasNoOffsets(Passing):
    """Returns no offsets if no broker answers."""

    def latest(self, partitions: Partitions) -> PartitionOffsets:
        try:
            return super().latest(partitions)
        except BrokerUnreachableError:
            return PartitionOffsets()


class UnreachableIsUncommitted(Passing):
    """Swallows that a commit reached no broker."""

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        with suppress(BrokerUnreachableError):
            super().commit(group_id, offsets)


class OtherErrors(Passing):
    """Raises an error of its own if no broker answers."""

    def earliest(self, partitions: Partitions) -> PartitionOffsets:
        try:
            return super().earliest(partitions)
        except BrokerUnreachableError as error:
            raise UnknownTopicError(["any"], "subscribe", "memory") from error


class ClosesOnce(Passing):
    """Fails when it is closed twice."""

    def close(self) -> None:
        super().close()
        del self.fetcher


def _suite(adapter: type[Passing]) -> type:
    return suite_with(Suite, world=lambda: AdaptedWorld("offset_fetcher", adapter))


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Passing),
    (
        *_wrong(
            Suite.test_a_subscription_to_an_unknown_topic_names_it, UnknownIsEmpty, NamesAllTopics
        ),
        *_wrong(
            Suite.test_assigned_partitions_that_do_not_exist_are_left_out, AssignsWhatIsMissing
        ),
        *_wrong(Suite.test_a_subscription_has_all_partitions_of_its_topics, ForgetsAPartition),
        *_wrong(Suite.test_a_pattern_matches_anywhere_in_a_name, MatchesWholeNames),
        *_wrong(Suite.test_a_pattern_does_not_match_internal_topics, MatchesInternalTopics),
        *_wrong(Suite.test_a_pattern_without_topics_has_no_partitions, NeedsAMatch),
        *_wrong(Suite.test_added_partitions_are_seen, RemembersPartitions),
        *_wrong(Suite.test_a_deleted_topic_is_gone, RemembersDeletedTopics),
        *_wrong(
            Suite.test_the_latest_offset_follows_what_is_written,
            *(EndIsTheStart, LastRecord, OneEnd, ForgetsAnEnd, RemembersEnds),
        ),
        *_wrong(
            Suite.test_the_earliest_offset_follows_what_is_deleted,
            *(StartIsTheEnd, StartIsZero),
        ),
        *_wrong(Suite.test_partitions_that_do_not_exist_have_no_offsets, MissingIsZero),
        *_wrong(Suite.test_a_topic_that_does_not_exist_has_no_offsets, MissingIsAnError),
        *_wrong(Suite.test_no_partitions_have_no_offsets, NothingIsEverything),
        *_wrong(
            Suite.test_an_open_transaction_bounds_the_latest_offset,
            *(IgnoresOpenTransactions, AlwaysReadsCommitted),
        ),
        *_wrong(Suite.test_each_partition_has_its_timestamp, OneTimestamp),
        *_wrong(
            Suite.test_a_timestamp_finds_the_first_record_that_is_not_older,
            *(LeavesNoneOut, NoneIsTheEnd, AfterTheTimestamp, BeforeTheTimestamp),
        ),
        *_wrong(Suite.test_timestamps_need_not_ascend, NearestTimestamp),
        *_wrong(Suite.test_a_timestamp_finds_no_deleted_record, CountsFromTheStart),
        *_wrong(
            Suite.test_a_commit_changes_its_partitions_only,
            *(DropsOtherPartitions, CommitsOnePartition, AllOfTheGroup),
        ),
        *_wrong(
            Suite.test_a_commit_may_be_repeated_and_go_back,
            *(CommitsForward, CommitsOnce, CommitsLastRecord),
        ),
        *_wrong(
            Suite.test_committed_offsets_of_a_group_are_returned,
            *(OneGroup, UncommittedIsZero),
        ),
        *_wrong(
            Suite.test_another_fetcher_sees_a_commit,
            *(KeepsCommits, RemembersCommits),
        ),
        *_wrong(
            Suite.test_an_unreachable_cluster_is_an_error,
            *(UnreachableIsEmpty, UnreachableHasNoOffsets, UnreachableIsUncommitted, OtherErrors),
        ),
        *_wrong(Suite.test_closing_twice_is_allowed, ClosesOnce),
    ),
)
