"""Records of more than 100 MB, which a broker of our own sends in some kilobytes."""

from typing import Final

import pytest

from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.errors import CorruptBatchError, OversizedRecordError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from tests.servers.hostile_broker import hostile_broker
from tests.unit.adapters.kafka_format.batches import ZSTD, raw_batch, raw_record

T0: Final = TopicPartition("t", 0)
SIZE: Final = 110_000_000
RAISED: Final = str(SIZE + 100)


@pytest.fixture(scope="module")
def servers():
    with hostile_broker(partitions=1) as broker:
        batch = bytes(raw_batch(raw_record(value=bytes(SIZE)), codec=ZSTD))
        broker.cluster.logs[T0].append(batch)
        yield broker.bootstrap_servers


def sizes(servers: str, client: str, **options: str) -> list[int]:
    given = {"kafka.bootstrap.servers": servers, "subscribe": T0.topic, "client": client, **options}
    container = container_for(parse_source_options(given, QueryKind.BATCH))
    reader = container.record_reader()
    try:
        batches = reader.read(OffsetRange(T0, 0, 1), Projection(("value",)))
        return [len(value.as_buffer()) for batch in batches for value in batch["value"]]
    finally:
        reader.close()
        container.shutdown_resources()


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
def test_a_large_record_is_read_if_it_is_allowed(servers, client):
    with pytest.raises(OversizedRecordError, match="raise 'maxRecordBytes'") as caught:
        sizes(servers, client)
    assert (caught.value.partition, caught.value.offset) == (T0, 0)
    assert caught.value.size > SIZE
    assert sizes(servers, client, maxRecordBytes=RAISED) == [SIZE]
    assert sizes(servers, client, skipOversizedRecords="true") == []


@pytest.mark.parametrize("skips", ["true", "false"])
def test_librdkafka_decompresses_no_more_zstd_than_it_may(servers, skips):
    """A batch above the limit counts as corrupt and is not skipped; the error names the option."""
    with pytest.raises(CorruptBatchError, match="more bytes than 'maxRecordBytes' allows"):
        sizes(servers, "confluent", maxRecordBytes="1000", skipOversizedRecords=skips)
