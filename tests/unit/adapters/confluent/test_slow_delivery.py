"""Records that wait in librdkafka's queue, with its mock cluster."""

import time
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.domain.writing.errors import RecordDeliveryError
from tests.slowness import bound_s

from ....servers.mock_cluster import MockCluster
from ..options import sink_of

TOPIC: Final = "t"
TIMEOUT_S: Final = 1.0


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(brokers=2) as made:
        made.create_topic(TOPIC, 2)
        for partition, broker in enumerate((1, 2)):
            made.lead(TOPIC, partition, broker)
        yield made


@pytest.fixture
def writer(cluster):
    made = ConfluentRecordWriter(
        sink_of(
            "confluent",
            {
                **cluster.options,
                "kafka.delivery.timeout.ms": str(round(1_000 * TIMEOUT_S)),
                "kafka.request.timeout.ms": str(round(1_000 * TIMEOUT_S)),
                "kafka.batch.size": "1",
                "kafka.max.in.flight.requests.per.connection": "1",
            },
        )
    )
    yield made
    made.close()


def rows(partitions: Sequence[int]) -> pa.RecordBatch:
    values = [b"%d" % number for number in range(len(partitions))]
    return pa.record_batch(
        {"value": pa.array(values, pa.binary()), "partition": pa.array(partitions, pa.int32())}
    )


def test_records_of_a_partition_that_accepts_some_wait_longer_than_the_time_out(cluster, writer):
    cluster.answer_after(0.1)
    begun = time.monotonic()
    writer.write(rows([0] * 25), TOPIC)
    assert writer.flush().records == 25
    assert time.monotonic() - begun > 2 * TIMEOUT_S


def test_a_partition_that_accepts_none_ends_the_task_while_another_accepts_some(cluster, writer):
    writer.write(rows([0, 1]), TOPIC)
    writer.flush()
    cluster.end(2)
    cluster.answer_after(0.1)
    begun = time.monotonic()
    writer.write(rows([1, *[0] * 600]), TOPIC)
    with pytest.raises(RecordDeliveryError, match="timed out") as caught:
        writer.flush()
    assert time.monotonic() - begun < bound_s(20)
    assert (caught.value.partition, caught.value.size) == (1, 1)
