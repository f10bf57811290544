"""Logins by tokens, on a real broker; the lives of tokens are shorter than the test."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from pyspark_kafka.adapters.security.providers import token_provider
from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.security.token_provider import Token
from pyspark_kafka.testing import KafkaWorld, Record
from pyspark_kafka.testing.stream_task import StreamTask, echo

from .uses import values

LIFE_S: Final = 6
"""A client that logs in before a token is renewed, at 80 % of its life, has a session of 1.2 s; no
broker accepts a renewed login after less than one."""

RECORDS: Final = 18


@dataclass(frozen=True)
class Copying:
    """A stream that copies a topic, exactly once if its client can, and a reader of the copy."""

    options: Mapping[str, str]
    topic: str
    target: str

    def run(self) -> None:
        with closing_clients(container_for(self._read(self.target, QueryKind.BATCH))) as reading:
            assert values(reading) == []
            self._copy()
            assert values(reading) == [b"%d" % number for number in range(RECORDS)]

    def _read(self, topic: str, query: QueryKind) -> SourceOptions:
        return parse_source_options({**self.options, "subscribe": topic}, query, UNRESTRICTED)

    def _copy(self) -> None:
        written = {**self.options, "topic": self.target, "metadataPath": "memory://tokens"}
        if self.options["client"] == "kafka-python":
            written["deliveryGuarantee"] = "exactly-once"
        sink = parse_sink_options(written, QueryKind.STREAM, UNRESTRICTED)
        partition = TopicPartition(self.topic, 0)
        with closing_clients(container_for(self._read(self.topic, QueryKind.STREAM))) as container:
            client = container.stream_client(sink, ContinuousSettings(self.target))
            with closing(client):
                task = StreamTask(client, echo)
                task.assign({partition: 0})
                task.process_to({partition: RECORDS})


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
            Copying({**given, "client": name}, world.topic(), world.topic())
            for name in ("confluent", "kafka-python")
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
