import ast
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

from ..client_settings import pairs_of

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}
INT32_MAX = 2**31 - 1
DEFAULTS = producer_config(ProducerSettings())


def client_config(**settings: str) -> dict[str, str]:
    return producer_client_config(read_java_settings(SERVERS | settings))


CHANGED = """
acks=1 is_idempotent=False -> acks=1 enable.idempotence=false
batch_size=0 -> batch.size=1
compression='zstd' compression_level=22 -> compression.type=zstd compression.level=12
compression='zstd' compression_level=-5 -> compression.type=zstd compression.level=-1
compression='gzip' compression_level=4 -> compression.type=gzip compression.level=4
ignores_keys=True -> partitioner=random
max_block_ms=9223372036854775807 -> topic.metadata.propagation.max.ms=3600000
is_idempotent=False max_in_flight=2147483647 -> max.in.flight.requests.per.connection=1000000 \
enable.idempotence=false
max_request_size=10 -> message.max.bytes=1000
retries=3 -> retries=3
"""
EXTREMES = """
acks=0 is_idempotent=False batch_size=2147483647 buffer_memory=9223372036854775807 \
max_request_size=2147483647 max_in_flight=2147483647 retries=0 delivery_timeout_ms=2147483647 \
max_block_ms=9223372036854775807 ignores_keys=True
batch_size=0 buffer_memory=0 max_request_size=0 max_in_flight=1 retries=1 delivery_timeout_ms=1 \
max_block_ms=0
"""


def settings_of(text: str) -> ProducerSettings:
    return ProducerSettings(**pairs_of(text, ast.literal_eval))


@pytest.mark.parametrize("line", CHANGED.strip().splitlines())
def test_javas_settings_are_librdkafkas(line):
    settings, changed = line.split(" -> ")
    made = producer_config(settings_of(settings))
    differing = {name: made[name] for name in made if DEFAULTS.get(name) != made[name]}
    assert differing == pairs_of(changed)


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
        *map(settings_of, EXTREMES.strip().splitlines()),
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


def test_reports_of_what_was_delivered_cannot_be_turned_off():
    """They prove that records are in a log."""
    given = {"delivery.report.only.error": "true"}
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
