"""The settings of librdkafka's producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...domain.options.option import INT32_MAX, clamp
from ...domain.options.settings_table import SETTINGS, Number, ProducerField
from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.options.client_settings import JavaSettings, ProducerSettings

MESSAGE_MAX_BYTES: Final = "message.max.bytes"
PARTITIONER: Final = "partitioner"
METADATA_MAX_AGE_MS: Final = "topic.metadata.refresh.interval.ms"

IDEMPOTENCE: Final = "enable.idempotence"
REPORT_FAILURES_ONLY: Final = "delivery.report.only.error"

FORCED: Final = {
    # A report without an error may have no offset: see DeliveryReports.
    REPORT_FAILURES_ONLY: "false"
}

_CONSUMER_ONLY: Final = """
    auto.commit.enable auto.commit.interval.ms auto.offset.reset check.crcs
    consume.callback.max.messages coordinator.query.interval.ms enable.auto.commit
    enable.auto.offset.store enable.partition.eof fetch.error.backoff.ms fetch.max.bytes
    fetch.max.wait.ms fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
    fetch.wait.max.ms group.id group.instance.id group.protocol group.protocol.type
    group.remote.assignor heartbeat.interval.ms isolation.level max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records offset.store.method offset.store.path
    offset.store.sync.interval.ms partition.assignment.strategy queued.max.messages.kbytes
    queued.min.messages session.timeout.ms share.acknowledgement.mode
"""
CONSUMER_ONLY: Final = frozenset(_CONSUMER_ONLY.split())
"""Settings that a producer of librdkafka ignores with a warning, with Java's names of them."""

_LINGER_MS: Final = 5
"""How long a batch waits for more records, unless it is full or flushed."""

_MESSAGE_OVERHEAD: Final = 128
"""A lower bound of the bytes that librdkafka needs for a record without content."""

_MIN_LEVEL: Final = -1
_MAX_LEVEL: Final = 12
"""librdkafka's bounds of ``compression.level``."""

_NUMBERS: Final[Mapping[str, tuple[str, Number]]] = {
    setting.write.name: (setting.librdkafka.name or setting.name, setting.librdkafka)
    for setting in SETTINGS
    if isinstance(setting.write, ProducerField) and isinstance(setting.librdkafka, Number)
}
"""librdkafka's names and bounds by the fields of ``ProducerSettings``."""


def producer_client_config(java: JavaSettings) -> dict[str, str]:
    """Translate settings as ``client_config`` does, without settings of consumers.

    :raises OptionsError: as ``client_config``.
    :raises MissingDependencyError: as ``client_config``.
    """
    config = client_config(java.without(CONSUMER_ONLY | FORCED.keys()))
    return {name: value for name, value in config.items() if name not in CONSUMER_ONLY}


def producer_config(producer: ProducerSettings) -> dict[str, str]:
    """Translate the producer's settings; numbers out of librdkafka's bounds become the nearest.

    The buffer holds at least one record of ``max_request_size`` bytes: librdkafka would wait
    forever for room for a larger one.
    """
    buffer = max(producer.buffer_memory, producer.max_request_size)
    config = {
        name: str(number.nearest(getattr(producer, field)))
        for field, (name, number) in _NUMBERS.items()
    } | {
        "acks": str(producer.acks),
        IDEMPOTENCE: str(producer.is_idempotent).lower(),
        "compression.type": producer.compression,
        # Batches are limited by their bytes: 10,000 small records are less than that.
        "batch.num.messages": "1000000",
        # Rounded up, so that a record of the maximum size fits.
        "queue.buffering.max.kbytes": str(clamp(1, -(-buffer // 1_024), INT32_MAX)),
        "queue.buffering.max.messages": str(clamp(1, buffer // _MESSAGE_OVERHEAD, INT32_MAX)),
        # librdkafka's limit would include the wait behind other records: ``AwaitedRecords`` has its
        # own.
        "message.timeout.ms": str(INT32_MAX),
        "linger.ms": str(_LINGER_MS),
        PARTITIONER: "random" if producer.ignores_keys else "murmur2_random",
    }
    if producer.compression_level is not None:
        level = clamp(_MIN_LEVEL, producer.compression_level, _MAX_LEVEL)
        config["compression.level"] = str(level)
    return config
