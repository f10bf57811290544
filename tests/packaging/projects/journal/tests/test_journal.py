"""The client ``journal`` does what the library's own clients do, and what only it does."""

from pathlib import Path

import pytest

from pyspark_kafka.domain.errors import BrokerUnreachableError, KafkaRequestError
from pyspark_kafka.domain.reading.errors import OffsetOutOfRangeError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import OffsetFetcherContract, Record, RecordReaderContract, World

from .journal_world import JournalWorld


@pytest.fixture
def world(tmp_path: Path) -> JournalWorld:
    """Return an empty directory."""
    return JournalWorld(tmp_path)


class TestJournalOffsetFetcher(OffsetFetcherContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        """Return an empty directory."""
        return JournalWorld(tmp_path)


class TestJournalRecordReader(RecordReaderContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        """Return an empty directory."""
        return JournalWorld(tmp_path)


def test_a_line_without_an_end_is_not_there_yet(world: JournalWorld, tmp_path: Path) -> None:
    """A line that is still being written is neither counted nor read."""
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, [Record(b"v")])
    with (tmp_path / partition.topic / "0.jsonl").open("a") as file:
        file.write('{"value": ')
    container = world.container()
    assert container.offset_fetcher().latest([partition]) == {partition: 1}
    with pytest.raises(OffsetOutOfRangeError, match=r"the broker holds \[0, 1\)"):
        list(container.record_reader().read(OffsetRange(partition, 0, 2), ALL_COLUMNS))


def test_a_line_that_is_no_record_is_named(world: JournalWorld, tmp_path: Path) -> None:
    """The error names the file and the line."""
    partition = TopicPartition(world.topic(), 0)
    path = tmp_path / partition.topic / "0.jsonl"
    path.write_text("[]\n")
    with pytest.raises(KafkaRequestError, match=rf"line 1 of {path}"):
        list(world.container().record_reader().read(OffsetRange(partition, 0, 1), ALL_COLUMNS))


def test_a_directory_that_is_not_there_is_an_unreachable_broker(tmp_path: Path) -> None:
    """The error names a wrong directory."""
    world = JournalWorld(tmp_path / "nowhere")
    options = world.options(subscribe="t")
    with pytest.raises(BrokerUnreachableError, match="nowhere"):
        world.container().offset_fetcher().partitions(options.subscription)
