"""The contract suite of ``OffsetFetcher``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from ..domain.errors import (
    BrokerUnreachableError,
    PysparkKafkaError,
    UnknownTopicError,
    UnsupportedFeatureError,
)
from ..domain.partition_offsets import PartitionOffsets
from ..domain.topic_partition import TopicPartition
from ..ports.reading import OffsetFetcher
from .world import COMMITTED, PATIENCE_S, Capability, Record, World, WorldContract, numbered

_MAX_SECONDS: Final = PATIENCE_S / 3
"""How long requests to an unreachable cluster may take, on a busy machine."""


def _fetcher(world: World, **options: str) -> OffsetFetcher:
    made: OffsetFetcher = world.container(**options).offset_fetcher()
    return made


def _all_of(topic: str, partitions: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in range(partitions))


class OffsetFetcherContract(WorldContract):
    """The contract of ``OffsetFetcher``; a subclass overrides the fixture ``world``."""

    def test_a_subscription_has_all_partitions_of_its_topics(self, world: World) -> None:
        """Every partition of each subscribed topic is returned, also empty ones."""
        one, other = world.topic(3), world.topic()
        options = world.options(subscribe=f"{one},{other}")
        expected = _all_of(one, 3) | _all_of(other, 1)
        assert _fetcher(world).partitions(options.subscription) == expected

    def test_a_subscription_to_an_unknown_topic_names_it(self, world: World) -> None:
        """An unknown topic is an error that names the topic, the option and the cluster."""
        topic, unknown = world.topic(), world.fresh_name()
        options = world.options(subscribe=f"{topic},{unknown}")
        with pytest.raises(UnknownTopicError) as caught:
            _fetcher(world).partitions(options.subscription)
        assert f"'{unknown}'" in str(caught.value)
        assert f"'{topic}'" not in str(caught.value)
        assert "'subscribe'" in str(caught.value)
        assert options.bootstrap_servers in str(caught.value)

    def test_assigned_partitions_that_do_not_exist_are_left_out(self, world: World) -> None:
        """Only the assigned partitions that exist are returned."""
        topic = world.topic(2)
        options = world.options(assign=json.dumps({topic: [1, 7], world.fresh_name(): [0]}))
        assert _fetcher(world).partitions(options.subscription) == {TopicPartition(topic, 1)}

    def test_a_pattern_matches_anywhere_in_a_name(self, world: World) -> None:
        """A pattern needs to match only a part of a topic's name."""
        topic = world.topic(2)
        options = world.options(subscribePattern=f"{topic[1:]}$")
        assert _all_of(topic, 2) <= _fetcher(world).partitions(options.subscription)

    def test_a_pattern_does_not_match_internal_topics(self, world: World) -> None:
        """Kafka's internal topics are left out."""
        topic = world.topic()
        made = _fetcher(world)
        if Capability.GROUPS in world.capabilities:
            # The first commit makes Kafka create its internal topic of offsets.
            made.commit(world.fresh_name(), PartitionOffsets({TopicPartition(topic, 0): 1}))
        found = made.partitions(world.options(subscribePattern=".*").subscription)
        assert not [partition for partition in found if partition.topic.startswith("__")]
        assert TopicPartition(topic, 0) in found

    def test_a_pattern_without_topics_has_no_partitions(self, world: World) -> None:
        """A pattern without matches is valid: a topic may be created later."""
        options = world.options(subscribePattern=f"^{world.fresh_name()}-none$")
        assert _fetcher(world).partitions(options.subscription) == frozenset()

    def test_added_partitions_are_seen(self, world: World) -> None:
        """Each call asks the cluster again."""
        world.require(Capability.ADD_PARTITIONS)
        topic = world.topic()
        options = world.options(subscribe=topic)
        made = _fetcher(world)
        assert made.partitions(options.subscription) == _all_of(topic, 1)
        world.add_partitions(topic, 3)
        assert made.partitions(options.subscription) == _all_of(topic, 3)

    def test_a_deleted_topic_is_gone(self, world: World) -> None:
        """A topic that is deleted while a fetcher is open has neither partitions nor offsets."""
        world.require(Capability.DELETE_TOPICS)
        topic = world.topic(2)
        pattern, assigned, subscribed = (
            world.options(**option).subscription
            for option in (
                {"subscribePattern": f"^{topic}$"},
                {"assign": json.dumps({topic: [0, 1]})},
                {"subscribe": topic},
            )
        )
        made = _fetcher(world)
        for subscription in (pattern, assigned, subscribed):
            assert made.partitions(subscription) == _all_of(topic, 2)
        assert made.latest(_all_of(topic, 2)) == dict.fromkeys(_all_of(topic, 2), 0)
        world.delete_topic(topic)
        assert made.partitions(pattern) == made.partitions(assigned) == frozenset()
        with pytest.raises(UnknownTopicError, match=topic):
            made.partitions(subscribed)
        _assert_no_offsets(world, made, _all_of(topic, 2))

    def test_offsets_of_a_partition_without_records_are_zero(self, world: World) -> None:
        """An empty partition begins and ends at 0."""
        partition = TopicPartition(world.topic(), 0)
        made = _fetcher(world)
        assert made.earliest([partition]) == {partition: 0}
        assert made.latest([partition]) == {partition: 0}

    def test_the_latest_offset_follows_what_is_written(self, world: World) -> None:
        """The latest offset is the one after the last record, and is fetched each time."""
        first, second = sorted(_all_of(world.topic(2), 2))
        made = _fetcher(world)
        world.produce(first, numbered(0, 5))
        assert made.latest([first, second]) == {first: 5, second: 0}
        world.produce(second, numbered(0, 2))
        assert made.latest([first, second]) == {first: 5, second: 2}

    def test_the_earliest_offset_follows_what_is_deleted(self, world: World) -> None:
        """The earliest offset is the first remaining record's; the latest stays."""
        world.require(Capability.DELETE_RECORDS)
        first, second = sorted(_all_of(world.topic(2), 2))
        world.produce(first, numbered(0, 5))
        world.produce(second, numbered(0, 2))
        world.delete_records(first, 3)
        made = _fetcher(world)
        assert made.earliest([first, second]) == {first: 3, second: 0}
        assert made.latest([first, second]) == {first: 5, second: 2}

    def test_partitions_that_do_not_exist_have_no_offsets(self, world: World) -> None:
        """Unknown topics and partitions are left out of the result."""
        topic = world.topic()
        known, unknown = TopicPartition(topic, 0), TopicPartition(topic, 5)
        asked = [known, unknown, TopicPartition(world.fresh_name(), 0)]
        made = _fetcher(world)
        assert made.earliest(asked) == {known: 0}
        assert made.latest(asked) == {known: 0}
        if Capability.TIMESTAMPS in world.capabilities:
            assert made.for_timestamps(dict.fromkeys(asked, 0)) == {known: None}

    def test_a_topic_that_does_not_exist_has_no_offsets(self, world: World) -> None:
        """If none of the partitions exists, the result is empty."""
        _assert_no_offsets(world, _fetcher(world), _all_of(world.fresh_name(), 2))

    def test_no_partitions_have_no_offsets(self, world: World) -> None:
        """A request without partitions returns no offsets."""
        made = _fetcher(world)
        _assert_no_offsets(world, made, [])
        if Capability.GROUPS in world.capabilities:
            group = world.fresh_name()
            made.commit(group, PartitionOffsets({TopicPartition(world.topic(), 0): 1}))
            assert made.committed(group, []) == {}

    def test_an_open_transaction_bounds_the_latest_offset(self, world: World) -> None:
        """Under read_committed the latest offset is the last stable one, else the log's end."""
        world.require(Capability.TRANSACTIONS)
        partition = TopicPartition(world.topic(), 0)
        world.produce(partition, numbered(0, 2))
        with world.transaction(commit=True) as write:
            write(partition, numbered(0, 3))
            assert _fetcher(world).latest([partition]) == {partition: 5}
            assert _fetcher(world, **COMMITTED).latest([partition]) == {partition: 2}
        assert _fetcher(world, **COMMITTED).latest([partition]) == {partition: 6}

    def test_a_timestamp_finds_the_first_record_that_is_not_older(self, world: World) -> None:
        """A time between records finds the later one, and one after the last record finds none."""
        world.require(Capability.TIMESTAMPS)
        partition = TopicPartition(world.topic(), 0)
        world.produce(partition, [Record(b"v", timestamp=1_000 * number) for number in (1, 2, 3)])
        made = _fetcher(world)
        found = [
            made.for_timestamps({partition: time})[partition] for time in (0, 2_000, 2_001, 3_001)
        ]
        assert found == [0, 1, 2, None]

    def test_each_partition_has_its_timestamp(self, world: World) -> None:
        """Partitions of one request are looked up by different timestamps."""
        world.require(Capability.TIMESTAMPS)
        partitions = sorted(_all_of(world.topic(3), 3))
        for partition in partitions:
            times = (1_000, 2_000, 3_000)
            world.produce(partition, [Record(b"v", timestamp=time) for time in times])
        asked = dict(zip(partitions, (2_500, 9_000, 1_500), strict=True))
        assert _fetcher(world).for_timestamps(asked) == dict(
            zip(partitions, (2, None, 1), strict=True)
        )

    def test_timestamps_need_not_ascend(self, world: World) -> None:
        """The first record by offset is found, not the one whose timestamp is the nearest."""
        world.require(Capability.TIMESTAMPS)
        partition = TopicPartition(world.topic(), 0)
        times = (3_000, 1_000, 2_000, 5_000, 4_000)
        world.produce(partition, [Record(b"v", timestamp=time) for time in times])
        made = _fetcher(world)
        found = [made.for_timestamps({partition: time})[partition] for time in (2_000, 3_001)]
        assert found == [0, 3]

    def test_a_timestamp_finds_no_record_of_an_open_transaction(self, world: World) -> None:
        """Under read_committed, records from the last stable offset on are not found yet."""
        world.require(Capability.TIMESTAMPS, Capability.TRANSACTIONS)
        partition = TopicPartition(world.topic(), 0)
        world.produce(partition, [Record(b"v", timestamp=1_000)])
        asked = {partition: 1_001}
        with world.transaction(commit=True) as write:
            write(partition, [Record(b"v", timestamp=2_000)])
            assert _fetcher(world).for_timestamps(asked) == {partition: 1}
            assert _fetcher(world, **COMMITTED).for_timestamps(asked) == {partition: None}
        assert _fetcher(world, **COMMITTED).for_timestamps(asked) == {partition: 1}

    def test_a_timestamp_finds_no_deleted_record(self, world: World) -> None:
        """The search begins at the earliest offset."""
        world.require(Capability.TIMESTAMPS, Capability.DELETE_RECORDS)
        partition = TopicPartition(world.topic(), 0)
        world.produce(partition, [Record(b"v", timestamp=1_000 * n) for n in range(1, 6)])
        world.delete_records(partition, 3)
        assert _fetcher(world).for_timestamps({partition: 2_000}) == {partition: 3}

    def test_committed_offsets_of_a_group_are_returned(self, world: World) -> None:
        """Each group has its own committed offsets; partitions without any are left out."""
        world.require(Capability.GROUPS)
        topic, group, other = world.topic(2), world.fresh_name(), world.fresh_name()
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        made = _fetcher(world)
        assert made.committed(group, [first, second]) == {}
        made.commit(group, PartitionOffsets({first: 4}))
        made.commit(other, PartitionOffsets({first: 5}))
        assert made.committed(group, [first, second]) == {first: 4}
        assert made.committed(other, [first]) == {first: 5}
        assert made.committed(world.fresh_name(), [first]) == {}

    def test_a_commit_changes_its_partitions_only(self, world: World) -> None:
        """The offsets of other partitions stay, and only those asked for are returned."""
        world.require(Capability.GROUPS)
        topic, other, group = world.topic(2), world.topic(), world.fresh_name()
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        third = TopicPartition(other, 0)
        made = _fetcher(world)
        made.commit(group, PartitionOffsets({first: 4, second: 5, third: 6}))
        made.commit(group, PartitionOffsets({second: 50}))
        assert made.committed(group, [first, second, third]) == {first: 4, second: 50, third: 6}
        assert made.committed(group, [first, third]) == {first: 4, third: 6}

    def test_a_commit_may_be_repeated_and_go_back(self, world: World) -> None:
        """The last commit of a partition counts, whether its offset is the same or smaller."""
        world.require(Capability.GROUPS)
        partition, group = TopicPartition(world.topic(), 0), world.fresh_name()
        made = _fetcher(world)
        for offset in (7, 7, 9, 3, 0):
            made.commit(group, PartitionOffsets({partition: offset}))
            assert made.committed(group, [partition]) == {partition: offset}

    def test_another_fetcher_sees_a_commit(self, world: World) -> None:
        """Committed offsets come from the cluster, and are fetched again each time."""
        world.require(Capability.GROUPS)
        partition, group = TopicPartition(world.topic(), 0), world.fresh_name()
        made, other = _fetcher(world), _fetcher(world)
        for offset in (4, 7):
            made.commit(group, PartitionOffsets({partition: offset}))
            assert other.committed(group, [partition]) == {partition: offset}

    def test_an_undeclared_capability_is_refused(self, world: World) -> None:
        """A client without groups, or offsets by timestamp, raises instead of a wrong result."""
        partition = TopicPartition(world.topic(), 0)
        made = _fetcher(world)
        calls: dict[Capability, list[Callable[[], object]]] = {
            Capability.GROUPS: [
                lambda: made.commit("group", PartitionOffsets({partition: 1})),
                lambda: made.committed("group", [partition]),
            ],
            Capability.TIMESTAMPS: [lambda: made.for_timestamps({partition: 0})],
        }
        undeclared = calls.keys() - world.capabilities
        if not undeclared:
            pytest.skip(f"{type(world).__name__} declares groups and timestamps")
        for capability in undeclared:
            for call in calls[capability]:
                with pytest.raises(UnsupportedFeatureError):
                    call()

    def test_an_unreachable_cluster_is_an_error(self, world: World) -> None:
        """Every request fails in time; no answer is neither an empty nor an old one."""
        world.require(Capability.OUTAGES)
        topic, group = world.topic(), world.fresh_name()
        partition = TopicPartition(topic, 0)
        requests: list[Callable[[OffsetFetcher], object]] = [
            lambda made: made.partitions(world.options(subscribe=topic).subscription),
            lambda made: made.partitions(world.options(subscribePattern=topic).subscription),
            lambda made: made.earliest([partition]),
            lambda made: made.latest([partition]),
        ]
        if Capability.TIMESTAMPS in world.capabilities:
            requests.append(lambda made: made.for_timestamps({partition: 0}))
        if Capability.GROUPS in world.capabilities:
            requests.append(lambda made: made.committed(group, [partition]))
            requests.append(lambda made: made.commit(group, PartitionOffsets({partition: 1})))
        fetchers = [_fetcher(world, **world.unreachable) for _ in requests]
        started = time.monotonic()
        with ThreadPoolExecutor(len(requests)) as pool:
            failures = list(pool.map(_failure, requests, fetchers))
        assert time.monotonic() - started < _MAX_SECONDS
        assert [type(failure) for failure in failures] == [BrokerUnreachableError] * len(requests)

    def test_closing_twice_is_allowed(self, world: World) -> None:
        """A second call of close has no effect."""
        made = _fetcher(world)
        made.earliest([TopicPartition(world.topic(), 0)])
        made.close()
        made.close()


def _assert_no_offsets(
    world: World, made: OffsetFetcher, partitions: Collection[TopicPartition]
) -> None:
    assert made.earliest(partitions) == {}
    assert made.latest(partitions) == {}
    if Capability.TIMESTAMPS in world.capabilities:
        assert made.for_timestamps(dict.fromkeys(partitions, 0)) == {}


def _failure(request: Callable[[OffsetFetcher], object], made: OffsetFetcher) -> object:
    """Return the error of a request, or else its result."""
    try:
        return request(made)
    except PysparkKafkaError as error:
        return error
