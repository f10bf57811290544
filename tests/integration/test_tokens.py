"""Logins by tokens, on a real broker; the lives of tokens are shorter than the test."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from pyspark_kafka.adapters.confluent.stream_client import ConfluentStreamClient
from pyspark_kafka.adapters.kafka_python.stream_client import KafkaPythonStreamClient
from pyspark_kafka.adapters.security.providers import token_provider
from pyspark_kafka.bootstrap.container import Container, container_for
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.ports.security.token_provider import Token
from pyspark_kafka.testing import KafkaWorld, Record

LIFE_S: Final = 6
"""A client that logs in before a token is renewed, at 80 % of its life, has a session of 1.2 s; no
broker accepts a renewed login after less than one."""

RECORDS: Final = 18
STREAM_CLIENTS: Final = {
    "confluent": ConfluentStreamClient,
    "kafka-python": KafkaPythonStreamClient,
}


@dataclass(frozen=True)
class Copying:
    """A stream that copies a topic exactly once, and a reader of the copy."""

    client: str
    options: Mapping[str, str]
    topic: str
    target: str

    def run(self) -> None:
        reading = {**self.options, "subscribe": self.target}
        container = container_for(parse_source_options(reading, QueryKind.BATCH, UNRESTRICTED))
        with closing(_Closing(container)):
            assert values(container) == []
            self._copy()
            assert values(container) == [b"%d" % number for number in range(RECORDS)]

    def _copy(self) -> None:
        source = parse_source_options(
            {**self.options, "subscribe": self.topic}, QueryKind.STREAM, UNRESTRICTED
        )
        written = {"topic": self.target, "deliveryGuarantee": "exactly-once"}
        stored = {"metadataPath": "memory://tokens"}
        sink = parse_sink_options(
            {**self.options, **written, **stored}, QueryKind.STREAM, UNRESTRICTED
        )
        partition = TopicPartition(self.topic, 0)
        acknowledged: dict[TopicPartition, int] = {}
        deadline = Deadline.after(60)
        settings = ContinuousSettings(self.target)
        with closing(STREAM_CLIENTS[self.client](source, sink, settings)) as client:
            client.assign(PartitionOffsets({partition: 0}))
            while acknowledged.get(partition) != RECORDS:
                assert not deadline.has_passed
                for polled in client.poll(0.5):
                    client.write(polled, () if polled.records is None else [polled.records])
                acknowledged.update(client.acknowledged())


@dataclass(frozen=True)
class _Closing:
    container: Container

    def close(self) -> None:
        self.container.shutdown_resources()


def values(container: Container) -> list[bytes | None]:
    read = container.range_read()
    return [
        value
        for offset_range in container.batch().plan_input_partitions()
        for batch in read.read(offset_range, Projection(("value",)))
        for value in batch.column("value").to_pylist()
    ]


def current_token(options: Mapping[str, str]) -> Token:
    parsed = parse_source_options({**options, "subscribe": "t"}, QueryKind.BATCH, UNRESTRICTED)
    login = read_java_settings(dict(parsed.kafka)).login
    assert login is not None
    assert login.tokens is not None
    return token_provider(login.tokens).token()


def test_tokens_are_renewed(secured, fresh_name):
    given = secured.options("OAUTHBEARER", kafka__isolation__level="read_committed")
    given |= {"kafka.sasl.oauthbearer.token.endpoint.url": f"{secured.token_url}/{LIFE_S}"}
    with closing(KafkaWorld("kafka-python", fresh_name, secured.cluster)) as world:
        copies = [
            Copying(name, {**given, "client": name}, world.topic(), world.topic())
            for name in STREAM_CLIENTS
        ]
        first = current_token(given)
        with ThreadPoolExecutor(len(copies)) as pool:
            running = [pool.submit(each.run) for each in copies]
            for number in range(RECORDS):
                time.sleep(1.5 * LIFE_S / RECORDS)
                for each in copies:
                    record = Record(value=b"%d" % number)
                    world.produce(TopicPartition(each.topic, 0), [record])
            for copying in running:
                copying.result(60)
        assert current_token(given).expires_ms > first.expires_ms
