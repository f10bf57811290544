"""The options with which a query writes its dead letters."""

from __future__ import annotations

import pytest

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.kafka_settings import ProducerSettings
from pyspark_kafka.domain.options import (
    DeliveryGuarantee,
    QueryKind,
    SinkOptions,
    dead_letter_sink,
    parse_source_options,
)

from .given import BASE


def sink(given: dict[str, str]) -> SinkOptions:
    return dead_letter_sink(parse_source_options(BASE | given, QueryKind.STREAM), "letters")


def test_the_client_and_its_settings_are_the_querys() -> None:
    """The letters go to the cluster that is read, with the same login."""
    given = {"client": "confluent", "kafka.security.protocol": "SSL", "kafka.fetch.min.bytes": "1"}
    made = sink(given)
    assert (made.client, made.topic) == ("confluent", "letters")
    assert made.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert dict(made.kafka) == {
        "bootstrap.servers": made.bootstrap_servers,
        "security.protocol": "SSL",
        "fetch.min.bytes": "1",
    }


def test_a_letter_may_be_as_large_as_a_record() -> None:
    """The producer's limits are those of the records that are read, where these are higher."""
    largest = (64 + 16) * 1024 * 1024
    assert sink({}).producer == ProducerSettings(max_request_size=largest, buffer_memory=largest)
    low = sink({"maxRecordBytes": "1", "maxRecordHeaderBytes": "1"}).producer
    assert low == ProducerSettings()
    limits = {"maxRecordBytes": str(2**31 - 1), "maxRecordHeaderBytes": str(2**31 - 1)}
    assert sink(limits).producer.max_request_size == 2**31 - 1


def test_settings_of_a_producer_apply() -> None:
    """A read ignores them otherwise."""
    given = {"kafka.compression.type": "zstd", "kafka.delivery.timeout.ms": "5000"}
    producer = sink(given).producer
    assert (producer.compression, producer.delivery_timeout_ms) == ("zstd", 5_000)


def test_no_setting_makes_a_letter_less_safe() -> None:
    """All replicas acknowledge, without duplicates, and the key decides the partition."""
    given = {
        "kafka.acks": "0",
        "kafka.enable.idempotence": "false",
        "kafka.retries": "0",
        "kafka.max.in.flight.requests.per.connection": "9",
        "kafka.partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
        "kafka.partitioner.ignore.keys": "true",
        "kafka.transactional.id": "mine",
    }
    assert sink(given).producer == sink({}).producer


def test_an_invalid_setting_is_refused() -> None:
    """A read ignores settings of producers, but one with dead letters has a producer."""
    with pytest.raises(OptionsError, match=r"kafka\.compression\.type"):
        sink({"kafka.compression.type": "rar"})
