"""What a stream tells when a batch is committed."""

from __future__ import annotations

import pytest

from pyspark_kafka.adapters.memory.offset_fetcher import MemoryOffsetFetcher
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.application.reading.progress_reports import RETRY_MS
from pyspark_kafka.domain.errors import KafkaRequestError
from pyspark_kafka.domain.lag.lag import Lag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from ..conftest import Kit, tp

END = PartitionOffsets({tp(0): 2, tp(1): 0})


def test_lag_is_reported_with_each_batch(kit: Kit) -> None:
    """What a batch has read is set against the latest offsets that the stream knows, once."""
    stream = kit.container({"startingOffsets": "earliest"}).micro_batch_stream()
    start = stream.initial_offset()
    kit.produce(5)
    stream.latest_offset(start, stream.default_read_limit)
    stream.latest_offset(END, stream.default_read_limit)
    stream.commit(END)
    assert kit.events.named("lag_measured") == (
        (Lag({tp(0): 5, tp(1): 0}),),
        (Lag({tp(0): 3, tp(1): 0}),),
    )


def test_without_latest_offsets_there_is_no_lag(kit: Kit) -> None:
    """A stream that has not asked Kafka yet has nothing to report."""
    kit.container().micro_batch_stream().commit(END)
    assert kit.events.named("lag_measured") == ()


def test_lag_that_nobody_takes_is_not_measured(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of partitions it would cost each batch milliseconds."""
    monkeypatch.setattr(MemorySourceEvents, "takes_lag", False)
    stream = kit.container().micro_batch_stream()
    stream.latest_offset(END, stream.default_read_limit)
    assert kit.events.named("lag_measured") == ()


def test_offsets_are_committed_to_the_group_that_is_named(kit: Kit) -> None:
    """The group gets the next offset of each partition; no other group is touched."""
    kit.container({"kafka.group.id": "other"}).micro_batch_stream().commit(END)
    kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream().commit(END)
    assert kit.cluster.committed("g") == END
    assert kit.cluster.committed("other") == {}


def test_the_last_batch_is_committed_when_the_next_is_asked_for(kit: Kit) -> None:
    """An engine without new data never commits the last batch, but goes on asking behind it."""
    stream = kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream()
    kit.produce(2)
    assert stream.latest_offset(END, stream.default_read_limit) == END
    assert kit.cluster.committed("g") == END


def test_a_commit_that_fails_is_reported_and_tried_again_later(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream goes on, and does not try at every trigger: the group's offsets are a copy."""
    failure = KafkaRequestError("a commit", "why")
    tried: list[object] = []

    def fail(_fetcher: object, _group_id: str, offsets: object) -> None:
        tried.append(offsets)
        if len(tried) < 3:
            raise failure

    monkeypatch.setattr(MemoryOffsetFetcher, "commit", fail)
    stream = kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream()
    for _ in range(3):
        stream.commit(END)
    assert kit.events.named("group_commit_failed") == (("g", failure),)
    for _ in range(3):
        kit.clock.sleep_ms(RETRY_MS)
        stream.commit(END)
    assert tried == [END] * 3
