"""What a stream tells when a batch is committed."""

from __future__ import annotations

import pytest

from pyspark_kafka.adapters.memory.offset_fetcher import MemoryOffsetFetcher
from pyspark_kafka.domain.errors import KafkaRequestError
from pyspark_kafka.domain.lag import Lag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from .conftest import Kit, tp

END = PartitionOffsets({tp(0): 2, tp(1): 0})


def test_lag_is_reported_with_each_commit(kit: Kit) -> None:
    """What was committed is set against the latest offsets that the stream knows."""
    stream = kit.container({"startingOffsets": "earliest"}).micro_batch_stream()
    kit.produce(5)
    stream.latest_offset(stream.initial_offset(), stream.default_read_limit)
    stream.commit(END)
    assert kit.events.named("lag_measured") == ((Lag({tp(0): 3, tp(1): 0}),),)


def test_without_latest_offsets_there_is_no_lag(kit: Kit) -> None:
    """A stream that has not asked Kafka yet has nothing to report."""
    kit.container().micro_batch_stream().commit(END)
    assert kit.events.named("lag_measured") == ()


def test_offsets_are_committed_to_the_group_that_is_named(kit: Kit) -> None:
    """The group gets the next offset of each partition; no other group is touched."""
    kit.container({"kafka.group.id": "other"}).micro_batch_stream().commit(END)
    kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream().commit(END)
    assert kit.cluster.committed("g") == END
    assert kit.cluster.committed("other") == {}


def test_a_commit_that_fails_is_reported(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream goes on: the group's offsets are a copy."""
    failure = KafkaRequestError("a commit", "why")

    def fail(*_arguments: object) -> None:
        raise failure

    monkeypatch.setattr(MemoryOffsetFetcher, "commit", fail)
    kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream().commit(END)
    assert kit.events.named("group_commit_failed") == (("g", failure),)
