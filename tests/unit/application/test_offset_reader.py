"""Learning offsets with patience."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.memory.offset_fetcher import MemoryOffsetFetcher
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    StartingOffsetsError,
    UnknownTopicError,
)
from pyspark_kafka.domain.offset_limits import Earliest, Latest, Specific
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from .conftest import Kit, tp

if TYPE_CHECKING:
    from pyspark_kafka.application.offset_reader import KafkaOffsetReader


def reader(kit: Kit, **options: str) -> KafkaOffsetReader:
    made: KafkaOffsetReader = kit.container(options).offset_reader()
    return made


class Failing:
    """Lets a method fail some times before it answers."""

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


def test_a_refusal_is_tried_again_after_the_interval(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two failures and a success make three calls, with the retry interval between them."""
    failing = Failing(monkeypatch, "partitions", [refused(), refused()])
    assert reader(kit, **{"fetchOffset.retryIntervalMs": "250"}).partitions() == {tp(0), tp(1)}
    assert failing.calls == 3
    assert kit.clock.now_ms() == 500
    assert [facts[:2] for facts in kit.events.named("offsets_retried")] == [(1, 3), (2, 3)]


def test_the_last_refusal_is_raised(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `fetchOffset.numRetries` attempts in all the error is given to the caller."""
    failing = Failing(monkeypatch, "partitions", [refused() for _ in range(9)])
    with pytest.raises(KafkaRequestError):
        reader(kit, **{"fetchOffset.numRetries": "2"}).partitions()
    assert failing.calls == 2


def test_an_unreachable_broker_is_not_tried_again(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has waited for its whole time already."""
    failing = Failing(monkeypatch, "partitions", [BrokerUnreachableError("b:1", 1)])
    with pytest.raises(BrokerUnreachableError):
        reader(kit).partitions()
    assert failing.calls == 1


def test_a_topic_that_does_not_come_about_is_an_error(kit: Kit) -> None:
    """Metadata may lag behind a new topic, so it is asked for again before it is an error."""
    with pytest.raises(UnknownTopicError):
        reader(kit, subscribe="none").partitions()
    assert len(kit.events.named("offsets_retried")) == 2


def test_an_answer_that_lacks_a_known_partition_is_asked_for_again(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partial answer of a broker does not shrink what is known."""
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


def test_an_end_before_what_is_known_is_taken_after_the_last_attempt(kit: Kit) -> None:
    """What Kafka says three times is its word, even if it is less than before."""
    kit.produce(3)
    known = PartitionOffsets({tp(0): 5, tp(1): 0})
    assert reader(kit).latest(known) == {tp(0): 3, tp(1): 0}
    [first, second] = kit.events.named("offsets_retried")
    assert first == (1, 3, "t-0 ends at 3, before the known offset 5")
    assert second[:2] == (2, 3)


def test_limits_become_offsets_of_the_log(kit: Kit) -> None:
    """Earliest, latest and specific offsets with -1 and -2 are looked up."""
    kit.produce(5)
    kit.produce(4, partition=1)
    kit.cluster.delete_records({tp(0): 2, tp(1): 1})
    made = reader(kit)
    assert made.resolve(Earliest()) == {tp(0): 2, tp(1): 1}
    assert made.resolve(Latest()) == {tp(0): 5, tp(1): 4}
    assert made.resolve(Specific(PartitionOffsets({tp(0): -2, tp(1): 3}))) == {tp(0): 2, tp(1): 3}
    assert made.resolve(Specific(PartitionOffsets({tp(0): 3, tp(1): -1}))) == {tp(0): 3, tp(1): 4}


@pytest.mark.parametrize("partitions", [[0], [0, 1, 2]])
def test_specific_offsets_name_every_partition(kit: Kit, partitions: list[int]) -> None:
    """Offsets for fewer or other partitions than there are, are an error that lists both."""
    limit = Specific(PartitionOffsets({tp(number): 0 for number in partitions}))
    with pytest.raises(StartingOffsetsError, match=r"Assigned: Set\(t-0, t-1\)"):
        reader(kit).resolve(limit)
