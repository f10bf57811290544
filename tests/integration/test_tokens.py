"""Logins by tokens, on a real broker; the lives of tokens are shorter than the test."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.confluent.stream_client import ConfluentStreamClient
from pyspark_kafka.adapters.kafka_python.stream_client import KafkaPythonStreamClient
from pyspark_kafka.adapters.tokens.providers import token_provider
from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.kafka_settings.java import read_java_settings
from pyspark_kafka.domain.options import QueryKind, parse_sink_options, parse_source_options
from pyspark_kafka.domain.options.policy import UNRESTRICTED
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.projection import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.deadline import Deadline
from pyspark_kafka.testing import KafkaWorld, Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.bootstrap.container import Container
    from pyspark_kafka.ports.stream_client import StreamClient
    from tests.servers.secured import SecuredBroker

LIFE_S = 2
RECORDS = 12
STREAM_CLIENTS: dict[str, type[ConfluentStreamClient | KafkaPythonStreamClient]] = {
    "confluent": ConfluentStreamClient,
    "kafka-python": KafkaPythonStreamClient,
}


def values(container: Container) -> list[bytes | None]:
    read = container.range_read()
    return [
        value
        for offset_range in container.batch().plan_input_partitions()
        for batch in read.read(offset_range, Projection(("value",)))
        for value in batch.column("value").to_pylist()
    ]


def copy(client: StreamClient, partition: TopicPartition) -> None:
    """Copy records until all are acknowledged."""
    acknowledged: dict[TopicPartition, int] = {}
    deadline = Deadline.after(60)
    client.assign(PartitionOffsets({partition: 0}))
    while acknowledged.get(partition) != RECORDS:
        assert not deadline.has_passed
        for polled in client.poll(0.5):
            client.write(polled, () if polled.records is None else [polled.records])
        acknowledged.update(client.acknowledged())


@pytest.mark.parametrize("name", STREAM_CLIENTS)
def test_tokens_are_renewed(
    secured: SecuredBroker, name: str, fresh_name: Callable[[], str]
) -> None:
    """A stream reads and writes exactly once while its tokens end, and an idle reader after it."""
    world = KafkaWorld(name, fresh_name, secured.cluster)
    topic, target = world.topic(), world.topic()
    url = f"{secured.token_url}/{LIFE_S}"
    given = secured.options("OAUTHBEARER", client=name, kafka__isolation__level="read_committed")
    given |= {"kafka.sasl.oauthbearer.token.endpoint.url": url}
    source = parse_source_options({**given, "subscribe": topic}, QueryKind.STREAM, UNRESTRICTED)
    written = {"topic": target, "deliveryGuarantee": "exactly-once", "metadataPath": "memory://t"}
    sink = parse_sink_options({**given, **written}, QueryKind.STREAM, UNRESTRICTED)
    login = read_java_settings(dict(source.kafka)).login
    assert login is not None
    assert login.tokens is not None
    tokens = token_provider(login.tokens)
    first = tokens.token()
    reading = parse_source_options({**given, "subscribe": target}, QueryKind.BATCH, UNRESTRICTED)
    container = container_for(reading)
    assert values(container) == []

    def produce() -> None:
        for number in range(RECORDS):
            world.produce(TopicPartition(topic, 0), [Record(value=b"%d" % number)])
            time.sleep(3 * LIFE_S / RECORDS)

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        with closing(STREAM_CLIENTS[name](source, sink, ContinuousSettings(target))) as client:
            copy(client, TopicPartition(topic, 0))
        assert values(container) == [b"%d" % number for number in range(RECORDS)]
        assert tokens.token().expires_ms > first.expires_ms
    finally:
        producing.join()
        container.shutdown_resources()
        world.close()
