"""Where a stream begins, and what a restart finds of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from ..conftest import Kit, tp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.application.reading.micro_batch_stream import KafkaMicroBatchStream

BEGINNING = PartitionOffsets({tp(0): 3, tp(1): 0})


def stream(
    kit: Kit, log: MemoryMetadataLog, options: Mapping[str, str] | None = None
) -> KafkaMicroBatchStream:
    """Return the stream of a driver that has just started."""
    container = kit.container(options)
    container.metadata_log.override(log)
    made: KafkaMicroBatchStream = container.micro_batch_stream()
    return made


def test_the_beginning_is_written_down(kit: Kit) -> None:
    """The log holds the offsets in the JVM connector's bytes before any batch is made."""
    kit.produce(3)
    log = MemoryMetadataLog()
    assert stream(kit, log).initial_offset() == BEGINNING
    assert log.get(0) == b'\0v1\n{"t":{"0":3,"1":0}}'


def test_a_restart_begins_where_the_first_start_did(kit: Kit) -> None:
    """Records that arrive between a failed first batch and the restart are read."""
    kit.produce(3)
    log = MemoryMetadataLog()
    stream(kit, log).initial_offset()
    kit.produce(5)
    assert stream(kit, log).initial_offset() == BEGINNING
    assert kit.events.named("initial_offsets") == ((BEGINNING,),)


def test_of_two_drivers_the_first_decides(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that was overtaken between its look and its write takes what it finds then."""
    kit.produce(3)
    log = MemoryMetadataLog()
    log.add(0, b'\0v1\n{"t":{"0":1,"1":0}}')
    answers = iter([None, log.get(0)])
    monkeypatch.setattr(MemoryMetadataLog, "get", lambda _log, _batch_id: next(answers))
    assert stream(kit, log).initial_offset() == {tp(0): 1, tp(1): 0}
    assert kit.events.named("initial_offsets") == ()


@pytest.mark.parametrize("was_first", [True, False])
def test_a_start_without_topics_is_kept(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, *, was_first: bool
) -> None:
    """A topic of the pattern that is created later is read from its first record, in any case."""
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


def test_a_first_batch_without_topics_runs_again(kit: Kit) -> None:
    """No topic is taken for deleted, though one was created before the batch ran again."""
    pattern = {"subscribePattern": "later.*", "startingOffsets": "latest"}
    log = MemoryMetadataLog()
    stream(kit, log, pattern).initial_offset()
    kit.cluster.create_topic("later", 1)
    restarted = stream(kit, log, pattern)
    assert restarted.plan_input_partitions(restarted.initial_offset(), PartitionOffsets()) == ()


@pytest.mark.parametrize("content", [b"\0v99999\n{}", b"", b"\0v1\n["])
def test_what_cannot_be_read_is_an_error(kit: Kit, content: bytes) -> None:
    """A log of a later version or of other bytes fails the stream and names the log."""
    log = MemoryMetadataLog()
    log.add(0, content)
    with pytest.raises(MetadataLogError) as caught:
        stream(kit, log).initial_offset()
    assert str(log) in str(caught.value)
