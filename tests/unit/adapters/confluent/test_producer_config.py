import ctypes

import pytest
from confluent_kafka import Producer

from pyspark_kafka.adapters.confluent.librdkafka import load
from pyspark_kafka.adapters.confluent.producer_config import (
    CONSUMER_ONLY,
    producer_client_config,
    producer_config,
)
from pyspark_kafka.domain.options.client_settings import ProducerSettings, read_java_settings
from pyspark_kafka.domain.options.settings_table import COMPRESSIONS

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}
INT32_MAX = 2**31 - 1
DEFAULTS = producer_config(ProducerSettings())


def client_config(**settings: str) -> dict[str, str]:
    return producer_client_config(read_java_settings(SERVERS | settings))


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        (
            ProducerSettings(acks=1, is_idempotent=False),
            {"acks": "1", "enable.idempotence": "false"},
        ),
        (ProducerSettings(batch_size=0), {"batch.size": "1"}),
        (
            ProducerSettings(compression="zstd", compression_level=22),
            {"compression.type": "zstd", "compression.level": "12"},
        ),
        (
            ProducerSettings(compression="zstd", compression_level=-5),
            {"compression.type": "zstd", "compression.level": "-1"},
        ),
        (
            ProducerSettings(compression="gzip", compression_level=4),
            {"compression.type": "gzip", "compression.level": "4"},
        ),
        (ProducerSettings(delivery_timeout_ms=1), {"message.timeout.ms": "1", "linger.ms": "0"}),
        (ProducerSettings(ignores_keys=True), {"partitioner": "random"}),
        (
            ProducerSettings(max_block_ms=2**63 - 1),
            {"topic.metadata.propagation.max.ms": "3600000"},
        ),
        (
            ProducerSettings(max_in_flight=INT32_MAX, is_idempotent=False),
            {"max.in.flight.requests.per.connection": "1000000", "enable.idempotence": "false"},
        ),
        (ProducerSettings(max_request_size=10), {"message.max.bytes": "1000"}),
        (ProducerSettings(retries=3), {"retries": "3"}),
    ],
    ids=str,
)
def test_javas_settings_are_librdkafkas(settings, changed):
    made = producer_config(settings)
    assert {name: made[name] for name in made if DEFAULTS.get(name) != made[name]} == changed


@pytest.mark.parametrize(
    ("memory", "largest", "kilobytes", "messages"),
    [
        (32 * 1024 * 1024, 1024 * 1024, 32 * 1024, 262_144),
        (16 * 1024, 1024 * 1024, 1_024, 8_192),
        (16 * 1024, 1_025, 16, 128),
        (0, 1_025, 2, 8),
        (0, 0, 1, 1),
        (2**63 - 1, 1, INT32_MAX, INT32_MAX),
    ],
)
def test_the_buffer_holds_a_record(memory, largest, kilobytes, messages):
    made = producer_config(ProducerSettings(buffer_memory=memory, max_request_size=largest))
    assert made["queue.buffering.max.kbytes"] == str(kilobytes)
    assert made["queue.buffering.max.messages"] == str(messages)


@pytest.mark.parametrize(
    "settings",
    [
        ProducerSettings(),
        *(ProducerSettings(compression=codec, compression_level=9) for codec in COMPRESSIONS),
        ProducerSettings(
            acks=0,
            is_idempotent=False,
            batch_size=INT32_MAX,
            buffer_memory=2**63 - 1,
            max_request_size=INT32_MAX,
            max_in_flight=INT32_MAX,
            retries=0,
            delivery_timeout_ms=INT32_MAX,
            max_block_ms=2**63 - 1,
            ignores_keys=True,
        ),
        ProducerSettings(
            batch_size=0,
            buffer_memory=0,
            max_request_size=0,
            max_in_flight=1,
            retries=1,
            delivery_timeout_ms=1,
            max_block_ms=0,
        ),
    ],
    ids=str,
)
def test_librdkafka_accepts_the_configuration(settings):
    Producer({**SERVERS, **producer_config(settings)})


def test_what_is_consumers_alone_is_left_out():
    plain = client_config()
    given = {"fetch.max.bytes": "2000", "isolation.level": "read_committed", "group.id": "g"}
    assert client_config(**given) == plain
    assert client_config(**{"fetch.min.bytes": "many"}) == plain
    assert "isolation.level" not in plain
    assert "message.max.bytes" not in plain


def test_reports_of_what_was_delivered_are_not_to_be_had():
    """A setting of them would make an event of every record."""
    given = {"delivery.report.only.error": "false"}
    assert client_config(**given) == client_config()


def test_all_settings_of_consumers_are_known(tmp_path):
    library = load()
    process = ctypes.CDLL(None)
    process.fopen.restype = ctypes.c_void_p
    path = tmp_path / "properties"
    file = ctypes.c_void_p(process.fopen(str(path).encode(), b"w"))
    library.rd_kafka_conf_properties_show(file)
    process.fclose(file)
    rows = [line.split("|") for line in path.read_text().splitlines() if line.count("|") > 4]
    consumers = {row[0].strip() for row in rows if row[1].strip() == "C"}
    functions = {name for name in consumers if name.endswith("_cb")}
    assert len(consumers) > 30
    assert consumers - functions <= CONSUMER_ONLY
    # ... and Java's name of one.
    assert {"fetch.max.wait.ms"} >= CONSUMER_ONLY - consumers
