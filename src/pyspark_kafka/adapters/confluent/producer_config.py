"""A sink's settings, as librdkafka's producer spells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.producer_settings import ProducerSettings

MESSAGE_MAX_BYTES: Final = "message.max.bytes"
PARTITIONER: Final = "partitioner"
METADATA_MAX_AGE_MS: Final = "topic.metadata.refresh.interval.ms"

FORCED: Final = {
    # Every record would be an event else; those that fail are all that is to be known.
    "delivery.report.only.error": "true",
}

CONSUMERS_ALONE: Final = frozenset(
    {
        "auto.commit.enable",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "consume.callback.max.messages",
        "coordinator.query.interval.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.protocol.type",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "offset.store.method",
        "offset.store.path",
        "offset.store.sync.interval.ms",
        "partition.assignment.strategy",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
        "share.acknowledgement.mode",
    }
)
"""The settings of which librdkafka warns that a producer ignores them, Java's names included."""

_LINGER_MS: Final = 5
"""How long a record waits for others. A batch that is full, and one that is flushed, do not."""

_BYTES_A_MESSAGE: Final = 128
"""Fewer than librdkafka's bookkeeping takes of a record, whose own bytes may be none."""

_MIN_MESSAGE_BYTES: Final = 1_000
_MAX_MESSAGE_BYTES: Final = 1_000_000_000
_INT32_MAX: Final = 2**31 - 1
_MAX_IN_FLIGHT: Final = 1_000_000
_MAX_LEVEL: Final = 12
_MIN_LEVEL: Final = -1
_MAX_PROPAGATION_MS: Final = 3_600_000
"""What librdkafka takes at the least and at the most."""


def producer_client_config(settings: Mapping[str, str]) -> dict[str, str]:
    """Translate ``kafka.*`` settings as ``client_config`` does, without those of consumers alone.

    :raises OptionsError: as ``client_config``.
    :raises MissingDependencyError: as ``client_config``.
    """
    unwanted = CONSUMERS_ALONE | FORCED.keys()
    config = client_config({name: settings[name] for name in settings.keys() - unwanted})
    return {name: value for name, value in config.items() if name not in CONSUMERS_ALONE}


def producer_config(producer: ProducerSettings) -> dict[str, str]:
    """Translate what Java's producer is told; what librdkafka cannot have is brought to the next.

    Its buffer holds one record of ``max_request_size`` bytes at the least: a larger one would
    never fit.
    """
    buffer = max(producer.buffer_memory, producer.max_request_size)
    config = {
        "acks": str(producer.acks),
        "enable.idempotence": str(producer.is_idempotent).lower(),
        "compression.type": producer.compression,
        "batch.size": str(max(1, producer.batch_size)),
        # The bytes of a batch are its measure: 10,000 small records are less than that.
        "batch.num.messages": "1000000",
        MESSAGE_MAX_BYTES: str(
            _between(_MIN_MESSAGE_BYTES, producer.max_request_size, _MAX_MESSAGE_BYTES)
        ),
        "max.in.flight.requests.per.connection": str(min(producer.max_in_flight, _MAX_IN_FLIGHT)),
        "retries": str(producer.retries),
        "message.timeout.ms": str(producer.delivery_timeout_ms),
        # A kilobyte that is begun counts: a record is to fit.
        "queue.buffering.max.kbytes": str(_between(1, -(-buffer // 1_024), _INT32_MAX)),
        "queue.buffering.max.messages": str(_between(1, buffer // _BYTES_A_MESSAGE, _INT32_MAX)),
        # It has to be less than the time that a record has in all.
        "linger.ms": str(min(_LINGER_MS, producer.delivery_timeout_ms - 1)),
        PARTITIONER: "random" if producer.ignores_keys else "murmur2_random",
        "topic.metadata.propagation.max.ms": str(min(producer.max_block_ms, _MAX_PROPAGATION_MS)),
    }
    if producer.compression_level is not None:
        level = _between(_MIN_LEVEL, producer.compression_level, _MAX_LEVEL)
        config["compression.level"] = str(level)
    return config


def _between(least: int, number: int, most: int) -> int:
    return max(least, min(most, number))
