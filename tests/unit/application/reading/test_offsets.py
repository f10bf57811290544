from collections.abc import Mapping
from dataclasses import replace
from unittest.mock import Mock, create_autospec

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.application.reading.offsets import KafkaOffsetReader
from pyspark_kafka.application.reading.stream import KafkaMicroBatchStream
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    MetadataLogError,
    UnknownTopicError,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import (
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    StreamOffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
)
from pyspark_kafka.domain.reading.offset_limits import (
    ByTimestamp,
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnMissingCommit,
    OnNoMatch,
    Specific,
    StartingOffsets,
)

from ..conftest import Kit, offsets, tp


def reader(kit: Kit, **options: str) -> KafkaOffsetReader:
    return kit.container(options).offset_reader()


def resolve(made: KafkaOffsetReader, limit: StartingOffsets) -> PartitionOffsets:
    """Return the offsets at which a stream with this limit starts."""
    return made.resolve_open(made.unresolved(limit, "start"))


def watched(monkeypatch: pytest.MonkeyPatch, method: str, *first: object) -> Mock:
    """Watch a method of fetchers, which returns or raises these things first."""
    answer, left = getattr(MemoryOffsetFetcher, method), list(first)

    def answer_or_fail(*given: object) -> object:
        found = left.pop(0) if left else answer(*given)
        if isinstance(found, Exception):
            raise found
        return found

    mock: Mock = create_autospec(answer, side_effect=answer_or_fail)
    monkeypatch.setattr(MemoryOffsetFetcher, method, mock)
    return mock


def refused() -> KafkaRequestError:
    return KafkaRequestError("a request", "no")


def test_a_refusal_is_tried_again_after_the_interval(kit, monkeypatch):
    asked = watched(monkeypatch, "partitions", refused(), refused())
    assert reader(kit, **{"fetchOffset.retryIntervalMs": "250"}).partitions() == {tp(0), tp(1)}
    assert asked.call_count == 3
    assert kit.clock.now_ms() == 500
    assert [facts[:2] for facts in kit.events.named("offsets_retried")] == [(1, 3), (2, 3)]


def test_the_last_refusal_is_raised(kit, monkeypatch):
    asked = watched(monkeypatch, "partitions", *(refused() for _ in range(9)))
    with pytest.raises(KafkaRequestError):
        reader(kit, **{"fetchOffset.numRetries": "2"}).partitions()
    assert asked.call_count == 2


def test_an_unreachable_broker_is_not_tried_again(kit, monkeypatch):
    asked = watched(monkeypatch, "partitions", BrokerUnreachableError("b:1", 1))
    with pytest.raises(BrokerUnreachableError):
        reader(kit).partitions()
    assert asked.call_count == 1


def test_a_topic_that_does_not_come_about_is_an_error(kit):
    with pytest.raises(UnknownTopicError):
        reader(kit, subscribe="none").partitions()
    assert len(kit.events.named("offsets_retried")) == 2


def test_an_answer_that_lacks_a_known_partition_is_asked_for_again(kit, monkeypatch):
    kit.produce(3)
    watched(monkeypatch, "latest", offsets(), offsets(3))
    known = offsets(2, 0)
    assert reader(kit).latest(known) == {tp(0): 3, tp(1): 0}
    assert len(kit.events.named("offsets_retried")) == 2


def test_an_end_before_what_is_known_is_taken_after_the_last_attempt(kit):
    """An end that Kafka returns three times counts, even if it is less than before."""
    kit.produce(3)
    known = offsets(5, 0)
    assert reader(kit).latest(known) == {tp(0): 3, tp(1): 0}
    [first, second] = kit.events.named("offsets_retried")
    assert first == (1, 3, "t-0 ends at 3, before the known offset 5")
    assert second[:2] == (2, 3)


def test_limits_become_offsets_of_the_log(kit):
    kit.produce(5)
    kit.produce(4, partition=1)
    kit.cluster.delete_records({tp(0): 2, tp(1): 1})
    made = reader(kit)
    assert resolve(made, Earliest()) == {tp(0): 2, tp(1): 1}
    assert resolve(made, Latest()) == {tp(0): 5, tp(1): 4}
    assert resolve(made, Specific(offsets(-2, 3))) == {tp(0): 2, tp(1): 3}
    assert resolve(made, Specific(offsets(3, -1))) == {tp(0): 3, tp(1): 4}


@pytest.mark.parametrize("partitions", [[0], [0, 1, 2]])
def test_specific_offsets_name_every_partition(kit, partitions):
    limit = Specific(PartitionOffsets({tp(number): 0 for number in partitions}))
    with pytest.raises(OffsetsMismatchError, match=r"Assigned: Set\(t-0, t-1\)"):
        resolve(reader(kit), limit)


@pytest.mark.parametrize("kind", [OffsetsMismatchError, StreamOffsetsMismatchError])
def test_a_mismatch_is_of_the_kind_that_is_asked_for(kit, kind):
    limit = Specific(offsets(0))
    with pytest.raises(OffsetsMismatchError, match=r"Specified: Set\(t-0\)") as caught:
        reader(kit).unresolved(limit, "start", kind)
    assert type(caught.value) is kind


def test_open_offsets_stay_open(kit):
    kit.produce(5)
    made = reader(kit)
    assert made.unresolved(Earliest(), "start") == {tp(0): -2, tp(1): -2}
    assert made.unresolved(Latest(), "end") == {tp(0): -1, tp(1): -1}
    limit = Specific(offsets(3, -1))
    assert made.unresolved(limit, "start") == {tp(0): 3, tp(1): -1}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Specific(PartitionOffsets(), (("t", -2),)), {tp(0): -2, tp(1): -2}),
        (Specific(PartitionOffsets(), (("t", -1),)), {tp(0): -1, tp(1): -1}),
    ],
)
def test_an_offset_of_a_topic_is_that_of_its_partitions(kit, limit, expected):
    assert reader(kit).unresolved(limit, "start") == expected


def test_topics_and_partitions_have_offsets_together(kit):
    kit.cluster.create_topic("u", 2)
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 2})
    made = reader(kit, subscribe="t,u")
    of_u = PartitionOffsets({tp(0, "u"): 7, tp(1, "u"): -1})
    limit = Specific(of_u, (("t", -2),))
    assert resolve(made, limit) == {tp(0): 2, tp(1): 0, tp(0, "u"): 7, tp(1, "u"): 0}


def test_a_topic_that_is_not_read_has_no_offset(kit):
    limit = Specific(PartitionOffsets(), (("t", -2), ("u", -1), ("v", -1)))
    with pytest.raises(
        TopicOffsetsMismatchError,
        match=r"no assigned partitions: u, v\. Assigned: Set\(t-0, t-1\)$",
    ):
        reader(kit).unresolved(limit, "start")


def test_a_topic_without_a_word_needs_offsets(kit):
    kit.cluster.create_topic("u")
    limit = Specific(PartitionOffsets(), (("t", -2),))
    with pytest.raises(
        OffsetsMismatchError, match=r"Specified: Set\(t-0, t-1\) Assigned: Set\(t-0, t-1, u-0\)"
    ):
        reader(kit, subscribe="t,u").unresolved(limit, "start")


def produce_at(kit: Kit, partition: int, *times: int) -> None:
    for time in times:
        kit.cluster.produce("t", b"v", partition=partition, timestamp=time)


def test_times_become_offsets(kit):
    produce_at(kit, 0, 100, 300, 200, 400)
    produce_at(kit, 1, 250)
    made = reader(kit)
    assert resolve(made, GlobalTimestamp(200, OnNoMatch.ERROR)) == {tp(0): 1, tp(1): 0}
    by_partition = ByTimestamp(((tp(0), 350), (tp(1), 1)), OnNoMatch.ERROR)
    assert resolve(made, by_partition) == {tp(0): 3, tp(1): 0}
    assert made.offsets_for_timestamps({tp(0): 400, tp(1): 400}) == {tp(0): 3, tp(1): None}


@pytest.mark.parametrize(
    "limit",
    [
        GlobalTimestamp(300, OnNoMatch.ERROR),
        ByTimestamp(((tp(0), 200), (tp(1), 300)), OnNoMatch.ERROR),
    ],
)
def test_a_time_that_no_record_reaches_is_an_error_or_the_end(kit, limit):
    produce_at(kit, 0, 100, 300)
    produce_at(kit, 1, 250, 260)
    made = reader(kit)
    with pytest.raises(
        NoOffsetForTimestampError,
        match="No offset matched from request of topic-partition t-1 and timestamp 300",
    ):
        made.unresolved(limit, "start")
    at_end = replace(limit, on_no_match=OnNoMatch.LATEST)
    assert made.unresolved(at_end, "end") == {tp(0): 1, tp(1): 2}


def test_the_first_partition_without_a_record_is_reported(kit):
    with pytest.raises(NoOffsetForTimestampError, match="topic-partition t-0 and timestamp 5"):
        resolve(reader(kit), GlobalTimestamp(5, OnNoMatch.ERROR))


@pytest.mark.parametrize("position", ["start", "end"])
@pytest.mark.parametrize("partitions", [[0], [0, 1, 2]])
def test_times_name_every_partition(kit, partitions, position):
    limit = ByTimestamp(tuple((tp(number), 0) for number in partitions), OnNoMatch.LATEST)
    with pytest.raises(
        TimestampsMismatchError, match=f"timestamp based {position} offsets"
    ) as caught:
        reader(kit).unresolved(limit, position)
    given = ", ".join(f"t-{number}" for number in partitions)
    assert f"Specified: Set({given}) Assigned: Set(t-0, t-1)" in str(caught.value)


def test_nothing_is_asked_about_no_partition(kit, monkeypatch):
    asked = [watched(monkeypatch, method) for method in ("earliest", "latest")]
    made = reader(kit)
    assert made.earliest([]) == {}
    assert made.resolve_open(offsets(3)) == offsets(3)
    assert [each.call_count for each in asked] == [0, 0]


def test_partitions_are_remembered_for_a_while(kit, monkeypatch):
    asked = watched(monkeypatch, "partitions")
    made = reader(kit, **{"partition.metadata.cache.ttl.ms": "1000"})
    start = made.latest(PartitionOffsets())
    kit.cluster.add_partitions("t", 3)
    kit.produce(2)
    assert made.latest(start) == {tp(0): 2, tp(1): 0}
    assert made.partitions() == {tp(0), tp(1)}
    kit.clock.sleep_ms(999)
    assert made.latest(start).keys() == {tp(0), tp(1)}
    assert asked.call_count == 1
    kit.clock.sleep_ms(1)
    assert made.latest(start).keys() == {tp(0), tp(1), tp(2)}
    assert asked.call_count == 2


def test_partitions_are_asked_for_every_time_by_default(kit, monkeypatch):
    asked = watched(monkeypatch, "partitions")
    made = reader(kit)
    made.latest(PartitionOffsets())
    kit.cluster.add_partitions("t", 3)
    assert made.latest(PartitionOffsets()).keys() == {tp(0), tp(1), tp(2)}
    assert asked.call_count == 2


@pytest.mark.parametrize("known", [offsets(5, 0), PartitionOffsets({tp(7): 0})])
def test_partitions_in_doubt_are_not_remembered(kit, monkeypatch, known):
    asked = watched(monkeypatch, "partitions")
    made = reader(kit, **{"partition.metadata.cache.ttl.ms": "60000"})
    assert made.latest(known) == {tp(0): 0, tp(1): 0}
    assert asked.call_count == 3


def test_partitions_are_asked_for_again_after_a_refusal(kit, monkeypatch):
    """A refusal may come from partitions that are gone: what is remembered is dropped."""
    asked = watched(monkeypatch, "partitions")
    made = reader(kit, **{"partition.metadata.cache.ttl.ms": "60000"})
    made.partitions()
    watched(monkeypatch, "latest", refused())
    assert made.latest(PartitionOffsets()) == {tp(0): 0, tp(1): 0}
    assert asked.call_count == 2


def test_one_attempt_takes_the_first_answer(kit):
    made = reader(kit, **{"fetchOffset.numRetries": "1"})
    assert made.latest(offsets(5)) == {tp(0): 0, tp(1): 0}
    assert kit.events.named("offsets_retried") == ()


@pytest.mark.parametrize(("limit", "method"), [(Earliest(), "earliest"), (Latest(), "latest")])
def test_an_end_that_kafka_does_not_tell_is_asked_for_again(kit, monkeypatch, limit, method):
    kit.produce(3)
    watched(monkeypatch, method, offsets(), offsets(0))
    assert set(resolve(reader(kit), limit).values()) <= {0, 3}
    assert len(kit.events.named("offsets_retried")) == 2


def test_an_end_that_kafka_never_tells_is_an_error(kit, monkeypatch):
    monkeypatch.setattr(MemoryOffsetFetcher, "latest", lambda _fetcher, _asked: PartitionOffsets())
    with pytest.raises(UnknownTopicError, match="Topic 't' does not exist"):
        resolve(reader(kit), Latest())


def test_a_group_begins_where_it_has_committed(kit):
    kit.cluster.commit("g", offsets(4, 7))
    assert reader(kit).unresolved(CommittedOffsets("g"), "start") == {tp(0): 4, tp(1): 7}


def test_a_group_that_has_not_committed_all_is_an_error(kit):
    kit.cluster.commit("g", offsets(4))
    with pytest.raises(NoCommittedOffsetError) as caught:
        reader(kit).unresolved(CommittedOffsets("g"), "start")
    assert "'g' has committed no offset for Set(t-1)" in str(caught.value)
    assert "startingOffsetsGroupFallback" in str(caught.value)


@pytest.mark.parametrize(
    ("on_missing", "offset"), [(OnMissingCommit.EARLIEST, 1), (OnMissingCommit.LATEST, 3)]
)
def test_what_a_group_has_not_committed_falls_back(kit, on_missing, offset):
    kit.produce(3, partition=1)
    kit.cluster.delete_records({tp(1): 1})
    kit.cluster.commit("g", offsets(4))
    assert resolve(reader(kit), CommittedOffsets("g", on_missing)) == {tp(0): 4, tp(1): offset}


BEGINNING = offsets(3, 0)


def stream(
    kit: Kit, log: MemoryMetadataLog, options: Mapping[str, str] | None = None
) -> KafkaMicroBatchStream:
    """Return the stream of a driver that has just started."""
    container = kit.container(options)
    container.metadata_log.override(log)
    return container.micro_batch_stream()


def test_the_beginning_is_written_down(kit):
    kit.produce(3)
    log = MemoryMetadataLog()
    assert stream(kit, log).initial_offset() == BEGINNING
    assert log.get(0) == b'\0v1\n{"t":{"0":3,"1":0}}'


def test_a_restart_begins_where_the_first_start_did(kit):
    kit.produce(3)
    log = MemoryMetadataLog()
    stream(kit, log).initial_offset()
    kit.produce(5)
    assert stream(kit, log).initial_offset() == BEGINNING
    assert kit.events.named("initial_offsets") == ((BEGINNING,),)


def test_of_two_drivers_the_first_decides(kit, monkeypatch):
    kit.produce(3)
    log = MemoryMetadataLog()
    log.add(0, b'\0v1\n{"t":{"0":1,"1":0}}')
    answers = iter([None, log.get(0)])
    monkeypatch.setattr(MemoryMetadataLog, "get", lambda _log, _batch_id: next(answers))
    assert stream(kit, log).initial_offset() == {tp(0): 1, tp(1): 0}
    assert kit.events.named("initial_offsets") == ()


@pytest.mark.parametrize("was_first", [True, False])
def test_a_start_without_topics_is_kept(kit, monkeypatch, *, was_first):
    pattern = {"subscribePattern": "later.*", "startingOffsets": "latest"}
    log = MemoryMetadataLog()
    assert stream(kit, log, pattern).initial_offset() == {}
    assert log.get(0) == b"\0v1\n{}"
    kit.cluster.create_topic("later", 1)
    kit.produce(4, topic="later")
    if not was_first:
        answers = iter([None, log.get(0)])
        monkeypatch.setattr(MemoryMetadataLog, "get", lambda _log, _batch_id: next(answers))
    restarted = stream(kit, log, pattern)
    assert restarted.initial_offset() == {}
    end = restarted.latest_offset(PartitionOffsets(), restarted.default_read_limit)
    (read,) = restarted.plan_input_partitions(PartitionOffsets(), end)
    assert (read.from_offset, read.until_offset) == (0, 4)


def test_a_first_batch_without_topics_runs_again(kit):
    """No topic is taken for deleted, though one was created before the batch ran again."""
    pattern = {"subscribePattern": "later.*", "startingOffsets": "latest"}
    log = MemoryMetadataLog()
    stream(kit, log, pattern).initial_offset()
    kit.cluster.create_topic("later", 1)
    restarted = stream(kit, log, pattern)
    assert restarted.plan_input_partitions(restarted.initial_offset(), PartitionOffsets()) == ()


@pytest.mark.parametrize("content", [b"\0v99999\n{}", b"", b"\0v1\n["])
def test_what_cannot_be_read_is_an_error(kit, content):
    log = MemoryMetadataLog()
    log.add(0, content)
    with pytest.raises(MetadataLogError) as caught:
        stream(kit, log).initial_offset()
    assert str(log) in str(caught.value)
