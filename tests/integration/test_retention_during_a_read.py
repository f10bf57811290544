from collections.abc import Iterator

import pyarrow as pa
import pytest

from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record

RECORDS = 30_000
DELETED = 29_000

# Little is fetched ahead, so that what is deleted was not in the client's hands before.
LITTLE_AHEAD = {
    "confluent": {
        "kafka.fetch.message.max.bytes": "100000",
        "kafka.queued.max.messages.kbytes": "200",
        "kafka.queued.min.messages": "1",
    },
    "kafka-python": {"kafka.max.partition.fetch.bytes": "100000"},
}


@pytest.fixture
def reading(world):
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, [Record(b"x" * 1_000)] * RECORDS)

    def read(fail_on_data_loss: str) -> Iterator[pa.RecordBatch]:
        container = world.container(failOnDataLoss=fail_on_data_loss, **LITTLE_AHEAD[world.client])
        batches = container.range_read().read(
            OffsetRange(partition, 0, RECORDS), Projection(("offset", "value"))
        )
        yield next(batches)
        world.delete_records(partition, DELETED)
        yield from batches

    return read


def test_a_query_that_may_lose_data_goes_on_behind_what_was_deleted(reading):
    offsets = [row["offset"] for batch in reading("false") for row in batch.to_pylist()]
    assert offsets == sorted(set(offsets))
    assert offsets[0] == 0
    assert offsets[-(RECORDS - DELETED) :] == list(range(DELETED, RECORDS))
    assert len(offsets) < RECORDS


def test_a_query_that_may_not_lose_data_fails(reading):
    batches = reading("true")
    first = next(batches)
    assert first["offset"][0].as_py() == 0
    with pytest.raises(DataLossError, match="Could not read records in offset") as caught:
        list(batches)
    assert f", {RECORDS}) for topic partition" in str(caught.value)
