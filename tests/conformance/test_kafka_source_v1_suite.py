"""KafkaMicroBatchV1SourceSuite: what the legacy source does, batch for batch, without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.application.reading.micro_batch_execution import MicroBatchExecution
from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.testing import KafkaWorld

from .start_offsets import STARTS, STRATEGIES, filled, write

VALUE = Projection(("value",))


def run_to_end(world: KafkaWorld, directory: Path, options: Mapping[str, str]) -> list[list[int]]:
    """Return the batches of one life of a driver, over logs in a directory."""
    given = {
        **world.addresses,
        "client": world.client,
        "metadataPath": str(directory / "sources" / "0"),
        **options,
    }
    batches: list[list[int]] = []
    parsed = parse_source_options(given, QueryKind.STREAM)
    with closing_clients(container_for(parsed)) as container:

        def load(ranges: Sequence[OffsetRange]) -> list[int]:
            return [
                int(row["value"])
                for planned in ranges
                for batch in container.range_read().read(planned, VALUE)
                for row in batch.to_pylist()
            ]

        source = container.kafka_source(load)
        offsets, commits = (
            FsspecMetadataLog(StoragePath(str(directory / name))) for name in ("offsets", "commits")
        )
        execution = MicroBatchExecution(
            source, offsets, commits, lambda batch, _number: batches.append(batch)
        )
        while execution.run_batch():
            pass
        source.stop()
    return batches


@pytest.mark.parametrize("start", STARTS)
def test_a_source_begins_at_its_offsets(world, start, tmp_path):
    begin = STARTS[start]
    topic = filled(world, begin)
    options = {**STRATEGIES["subscribing topic by name"](topic), **begin.options(topic)}
    [first] = run_to_end(world, tmp_path, options)
    assert sorted(first) == sorted(begin.first)
    write(world, topic, 0, 7, 8)
    world.add_partitions(topic, 6)
    write(world, topic, 5, 9)
    assert run_to_end(world, tmp_path, options) == [[7, 8, 9]]
