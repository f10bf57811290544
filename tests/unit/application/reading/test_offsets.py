from collections.abc import Mapping

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

from ..conftest import Kit, tp


def reader(kit: Kit, **options: str) -> KafkaOffsetReader:
    return kit.container(options).offset_reader()


def resolve(made: KafkaOffsetReader, limit: StartingOffsets) -> PartitionOffsets:
    """Return the offsets at which a stream with this limit starts."""
    return made.resolve_open(made.unresolved(limit, "start"))


class Failing:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str, failures: list[Exception]):
        answer = getattr(MemoryOffsetFetcher, method)
        self.calls = 0

        def fail_first(fetcher: MemoryOffsetFetcher, *arguments: object) -> object:
            self.calls += 1
            if failures:
                raise failures.pop(0)
            return answer(fetcher, *arguments)

        monkeypatch.setattr(MemoryOffsetFetcher, method, fail_first)


def refused() -> KafkaRequestError:
    return KafkaRequestError("a request", "no")


def test_a_refusal_is_tried_again_after_the_interval(kit, monkeypatch):
    failing = Failing(monkeypatch, "partitions", [refused(), refused()])
    assert reader(kit, **{"fetchOffset.retryIntervalMs": "250"}).partitions() == {tp(0), tp(1)}
    assert failing.calls == 3
    assert kit.clock.now_ms() == 500
    assert [facts[:2] for facts in kit.events.named("offsets_retried")] == [(1, 3), (2, 3)]


def test_the_last_refusal_is_raised(kit, monkeypatch):
    failing = Failing(monkeypatch, "partitions", [refused() for _ in range(9)])
    with pytest.raises(KafkaRequestError):
        reader(kit, **{"fetchOffset.numRetries": "2"}).partitions()
    assert failing.calls == 2


def test_an_unreachable_broker_is_not_tried_again(kit, monkeypatch):
    failing = Failing(monkeypatch, "partitions", [BrokerUnreachableError("b:1", 1)])
    with pytest.raises(BrokerUnreachableError):
        reader(kit).partitions()
    assert failing.calls == 1


def test_a_topic_that_does_not_come_about_is_an_error(kit):
    with pytest.raises(UnknownTopicError):
        reader(kit, subscribe="none").partitions()
    assert len(kit.events.named("offsets_retried")) == 2


def test_an_answer_that_lacks_a_known_partition_is_asked_for_again(kit, monkeypatch):
    kit.produce(3)
    answers = [PartitionOffsets(), PartitionOffsets({tp(0): 3})]
    whole = MemoryOffsetFetcher.latest
    monkeypatch.setattr(
        MemoryOffsetFetcher,
        "latest",
        lambda fetcher, asked: answers.pop(0) if answers else whole(fetcher, asked),
    )
    known = PartitionOffsets({tp(0): 2, tp(1): 0})
    assert reader(kit).latest(known) == {tp(0): 3, tp(1): 0}
    assert len(kit.events.named("offsets_retried")) == 2


def test_an_end_before_what_is_known_is_taken_after_the_last_attempt(kit):
    """What Kafka says three times is its word, even if it is less than before."""
    kit.produce(3)
    known = PartitionOffsets({tp(0): 5, tp(1): 0})
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
    assert resolve(made, Specific(PartitionOffsets({tp(0): -2, tp(1): 3}))) == {tp(0): 2, tp(1): 3}
    assert resolve(made, Specific(PartitionOffsets({tp(0): 3, tp(1): -1}))) == {tp(0): 3, tp(1): 4}


@pytest.mark.parametrize("partitions", [[0], [0, 1, 2]])
def test_specific_offsets_name_every_partition(kit, partitions):
    limit = Specific(PartitionOffsets({tp(number): 0 for number in partitions}))
    with pytest.raises(OffsetsMismatchError, match=r"Assigned: Set\(t-0, t-1\)"):
        resolve(reader(kit), limit)


@pytest.mark.parametrize("kind", [OffsetsMismatchError, StreamOffsetsMismatchError])
def test_a_mismatch_is_of_the_kind_that_is_asked_for(kit, kind):
    limit = Specific(PartitionOffsets({tp(0): 0}))
    with pytest.raises(OffsetsMismatchError, match=r"Specified: Set\(t-0\)") as caught:
        reader(kit).unresolved(limit, "start", kind)
    assert type(caught.value) is kind


def test_open_offsets_stay_open(kit):
    kit.produce(5)
    made = reader(kit)
    assert made.unresolved(Earliest(), "start") == {tp(0): -2, tp(1): -2}
    assert made.unresolved(Latest(), "end") == {tp(0): -1, tp(1): -1}
    limit = Specific(PartitionOffsets({tp(0): 3, tp(1): -1}))
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
    offsets = PartitionOffsets({tp(0, "u"): 7, tp(1, "u"): -1})
    limit = Specific(offsets, (("t", -2),))
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


TOO_LATE = [
    (GlobalTimestamp(300, OnNoMatch.ERROR), GlobalTimestamp(300, OnNoMatch.LATEST)),
    (
        ByTimestamp(((tp(0), 200), (tp(1), 300)), OnNoMatch.ERROR),
        ByTimestamp(((tp(0), 200), (tp(1), 300)), OnNoMatch.LATEST),
    ),
]


@pytest.mark.parametrize("limit", [row[0] for row in TOO_LATE])
def test_a_time_that_no_record_reaches_is_an_error(kit, limit):
    produce_at(kit, 0, 100, 300)
    produce_at(kit, 1, 250, 260)
    with pytest.raises(
        NoOffsetForTimestampError,
        match="No offset matched from request of topic-partition t-1 and timestamp 300",
    ):
        reader(kit).unresolved(limit, "start")


@pytest.mark.parametrize("limit", [row[1] for row in TOO_LATE])
def test_a_time_that_no_record_reaches_is_the_end(kit, limit):
    produce_at(kit, 0, 100, 300)
    produce_at(kit, 1, 250, 260)
    assert reader(kit).unresolved(limit, "end") == {tp(0): 1, tp(1): 2}


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
    earliest = Failing(monkeypatch, "earliest", [])
    latest = Failing(monkeypatch, "latest", [])
    made = reader(kit)
    offsets = PartitionOffsets({tp(0): 3})
    assert made.earliest([]) == {}
    assert made.resolve_open(offsets) == offsets
    assert (earliest.calls, latest.calls) == (0, 0)


def test_partitions_are_remembered_for_a_while(kit, monkeypatch):
    asked = Failing(monkeypatch, "partitions", [])
    made = reader(kit, **{"partition.metadata.cache.ttl.ms": "1000"})
    start = made.latest(PartitionOffsets())
    kit.cluster.add_partitions("t", 3)
    kit.produce(2)
    assert made.latest(start) == {tp(0): 2, tp(1): 0}
    assert made.partitions() == {tp(0), tp(1)}
    kit.clock.sleep_ms(999)
    assert made.latest(start).keys() == {tp(0), tp(1)}
    assert asked.calls == 1
    kit.clock.sleep_ms(1)
    assert made.latest(start).keys() == {tp(0), tp(1), tp(2)}
    assert asked.calls == 2


def test_partitions_are_asked_for_every_time_by_default(kit, monkeypatch):
    asked = Failing(monkeypatch, "partitions", [])
    made = reader(kit)
    made.latest(PartitionOffsets())
    kit.cluster.add_partitions("t", 3)
    assert made.latest(PartitionOffsets()).keys() == {tp(0), tp(1), tp(2)}
    assert asked.calls == 2


@pytest.mark.parametrize(
    "known", [PartitionOffsets({tp(0): 5, tp(1): 0}), PartitionOffsets({tp(7): 0})]
)
def test_partitions_in_doubt_are_not_remembered(kit, monkeypatch, known):
    asked = Failing(monkeypatch, "partitions", [])
    made = reader(kit, **{"partition.metadata.cache.ttl.ms": "60000"})
    assert made.latest(known) == {tp(0): 0, tp(1): 0}
    assert asked.calls == 3


def test_partitions_are_asked_for_again_after_a_refusal(kit, monkeypatch):
    """A refusal may come from partitions that are gone: what is remembered is dropped."""
    asked = Failing(monkeypatch, "partitions", [])
    made = reader(kit, **{"partition.metadata.cache.ttl.ms": "60000"})
    made.partitions()
    Failing(monkeypatch, "latest", [refused()])
    assert made.latest(PartitionOffsets()) == {tp(0): 0, tp(1): 0}
    assert asked.calls == 2


def test_one_attempt_takes_the_first_answer(kit):
    made = reader(kit, **{"fetchOffset.numRetries": "1"})
    assert made.latest(PartitionOffsets({tp(0): 5})) == {tp(0): 0, tp(1): 0}
    assert kit.events.named("offsets_retried") == ()


@pytest.mark.parametrize(("limit", "method"), [(Earliest(), "earliest"), (Latest(), "latest")])
def test_an_end_that_kafka_does_not_tell_is_asked_for_again(kit, monkeypatch, limit, method):
    kit.produce(3)
    whole = getattr(MemoryOffsetFetcher, method)
    answers = [PartitionOffsets(), PartitionOffsets({tp(0): 0})]
    monkeypatch.setattr(
        MemoryOffsetFetcher,
        method,
        lambda fetcher, asked: answers.pop(0) if answers else whole(fetcher, asked),
    )
    assert set(resolve(reader(kit), limit).values()) <= {0, 3}
    assert len(kit.events.named("offsets_retried")) == 2


def test_an_end_that_kafka_never_tells_is_an_error(kit, monkeypatch):
    monkeypatch.setattr(MemoryOffsetFetcher, "latest", lambda _fetcher, _asked: PartitionOffsets())
    with pytest.raises(KafkaRequestError, match="offsets: t-0 does not exist"):
        resolve(reader(kit), Latest())


def test_a_group_begins_where_it_has_committed(kit):
    kit.cluster.commit("g", PartitionOffsets({tp(0): 4, tp(1): 7}))
    assert reader(kit).unresolved(CommittedOffsets("g"), "start") == {tp(0): 4, tp(1): 7}


def test_a_group_that_has_not_committed_all_is_an_error(kit):
    kit.cluster.commit("g", PartitionOffsets({tp(0): 4}))
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
    kit.cluster.commit("g", PartitionOffsets({tp(0): 4}))
    assert resolve(reader(kit), CommittedOffsets("g", on_missing)) == {tp(0): 4, tp(1): offset}


BEGINNING = PartitionOffsets({tp(0): 3, tp(1): 0})


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
