"""Epochs while the log's storage fails."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.batch_files import ConcurrentUpdateError
from pyspark_kafka.application.continuous.epoch_committer import EpochCommitter
from pyspark_kafka.application.continuous.epoch_log import EpochLog
from pyspark_kafka.domain.checkpoints.checkpoint_log import write_batch_end
from pyspark_kafka.domain.continuous.epoch_coordinator import Epoch, EpochCoordinator
from pyspark_kafka.domain.continuous.messages import TaskId
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import MemoryWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.application.continuous.stream import KafkaContinuousStream

from ..failing_log import FailingLog

T0 = TopicPartition("t", 0)
TASK = TaskId(1, 0, "a")


def offsets(value: int) -> PartitionOffsets:
    return PartitionOffsets({T0: value})


@pytest.fixture
def stream() -> Iterator[KafkaContinuousStream]:
    world = MemoryWorld("memory")
    yield world.container().continuous_stream()
    world.close()


@pytest.fixture
def coordinator() -> EpochCoordinator:
    coordinator = EpochCoordinator(Epoch(4, offsets(3)))
    coordinator.assign(TASK, [T0])
    coordinator.report(TASK, offsets(5))
    return coordinator


def test_an_epoch_is_tried_again_after_an_outage(
    stream: KafkaContinuousStream,
    coordinator: EpochCoordinator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The warning comes once."""
    log = FailingLog(is_stored=False)
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), stream, 60)
    log.fails = 2
    with caplog.at_level(logging.WARNING, "pyspark_kafka"):
        committer.commit_next(coordinator, is_final=False)
        committer.commit_next(coordinator, is_final=False)
    assert coordinator.last == Epoch(4, offsets(3))
    [warning] = caplog.messages
    assert warning.endswith("the connection broke (the log)")
    committer.commit_next(coordinator, is_final=False)
    assert coordinator.last == Epoch(5, offsets(5))


@pytest.mark.parametrize(("max_outage_s", "is_final"), [(-1, False), (60, True)])
def test_a_long_outage_and_one_at_the_end_fail_the_query(
    stream: KafkaContinuousStream,
    coordinator: EpochCoordinator,
    max_outage_s: float,
    is_final: bool,
) -> None:
    log = FailingLog(is_stored=False)
    log.fails = 1
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), stream, max_outage_s)
    with pytest.raises(MetadataLogError, match="the connection broke"):
        committer.commit_next(coordinator, is_final=is_final)


def test_a_rival_fails_the_query_at_once(
    stream: KafkaContinuousStream, coordinator: EpochCoordinator
) -> None:
    log = MemoryMetadataLog()
    log.add(5, write_batch_end(offsets(9), 1))
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), stream, 60)
    with pytest.raises(ConcurrentUpdateError):
        committer.commit_next(coordinator, is_final=False)


def test_without_progress_nothing_is_written(stream: KafkaContinuousStream) -> None:
    log = MemoryMetadataLog()
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), stream, 60)
    committer.commit_next(EpochCoordinator(Epoch(4, offsets(3))), is_final=True)
    assert log.batch_ids() == []
