"""The settings of Kafka's Java producer, as values that either client is made to follow.

What they mean, and which of them contradict each other, is said by Java's ``ProducerConfig``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from .kafka_settings import PREFIX
from .option_values import INT32_MAX, INT64_MAX, boolean, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ALL_REPLICAS: Final = -1
"""``acks`` of a record that is acknowledged once every replica in sync has it."""

MAX_IN_FLIGHT: Final = 5
"""The requests that a broker can put in order by their sequence numbers."""

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_ROUND_ROBIN: Final = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
_UNIFORM_STICKY: Final = "org.apache.kafka.clients.producer.UniformStickyPartitioner"
_DEFAULT_PARTITIONERS: Final = (
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
    _UNIFORM_STICKY,
)

ROUND_ROBIN: Final = "round-robin"
"""The partitioner that takes one partition after the other, whatever the key."""


@final
@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How records are written; sizes in bytes.

    ``partitioner`` is ``None``, ``ROUND_ROBIN``, or a function of Python's, ``module:function``.
    ``compression_level`` is ``None`` where the codec's own default is to be taken.
    """

    acks: int = ALL_REPLICAS
    is_idempotent: bool = True
    compression: str = "none"
    compression_level: int | None = None
    batch_size: int = 512 * 1024
    buffer_memory: int = 32 * 1024 * 1024
    max_request_size: int = 1024 * 1024
    max_in_flight: int = MAX_IN_FLIGHT
    retries: int = INT32_MAX
    delivery_timeout_ms: int = 120_000
    max_block_ms: int = 10_000
    transaction_timeout_ms: int = 900_000
    ignores_keys: bool = False
    partitioner: str | None = None


WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "linger.ms": "what a task has is sent when a batch is full or the task ends",
    "metadata.max.idle.ms": "metadata go with the producer, when it was idle for ten minutes",
    "partitioner.adaptive.partitioning.enable": "records without a key change the partition with "
    "every batch, whatever a broker's queue is",
    "partitioner.availability.timeout.ms": "a partition without a leader is waited for",
    "transaction.two.phase.commit.enable": "'deliveryGuarantee' says whether transactions are used",
}
"""Settings of Java's producer that are accepted and change nothing, each with the reason."""

REFUSED: Final[Mapping[str, str]] = {
    # The words of KafkaSourceProvider.kafkaParamsForProducer.
    "key.serializer": "Kafka option 'key.serializer' is not supported as keys are serialized "
    "with ByteArraySerializer.",
    "value.serializer": "Kafka option 'value.serializer' is not supported as value are serialized "
    "with ByteArraySerializer.",
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported: no Java class "
    "runs here; change rows before they are written.",
    "transactional.id": "Kafka option 'transactional.id' is not supported: set the option "
    "'deliveryGuarantee' to 'exactly-once', and 'transactionalIdPrefix'.",
}
"""Settings that a sink does not let be set, in the order in which they are complained about."""


def _whole(least: int, most: int = INT32_MAX) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = integer(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return number

    return parse


def _boolean(text: str) -> bool:
    try:
        return boolean(text)
    except ValueError:
        raise ValueError("must be true or false") from None


def _acks(text: str) -> int:
    acknowledgements = {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "0": 0, "1": 1}
    if text not in acknowledgements:
        raise ValueError("must be all, -1, 0 or 1")
    return acknowledgements[text]


def _compression(text: str) -> str:
    if text not in COMPRESSIONS:
        raise ValueError(f"must be one of {', '.join(COMPRESSIONS)}")
    return text


def _gzip_level(text: str) -> int | None:
    return None if text == "-1" else _whole(1, 9)(text)


def _level(codec: str) -> str:
    return f"compression.{codec}.level"


def _partitioner(text: str) -> str | None:
    if not text or text in _DEFAULT_PARTITIONERS:
        return None
    if text == _ROUND_ROBIN:
        return ROUND_ROBIN
    module, _, function = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        raise ValueError(
            f"must be {_ROUND_ROBIN}, or a function of Python's as 'module:function': "
            "no Java class runs here"
        )
    return text


FIELDS: Final[Mapping[str, str]] = {
    "acks": "acks",
    "batch.size": "batch_size",
    "buffer.memory": "buffer_memory",
    "compression.type": "compression",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "enable.idempotence": "is_idempotent",
    "max.block.ms": "max_block_ms",
    "max.in.flight.requests.per.connection": "max_in_flight",
    "max.request.size": "max_request_size",
    "partitioner.class": "partitioner",
    "partitioner.ignore.keys": "ignores_keys",
    "retries": "retries",
    "transaction.timeout.ms": "transaction_timeout_ms",
}
"""The settings that have an effect, and the field that each fills; levels of codecs besides."""

_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "acks": _acks,
    "batch.size": _whole(0),
    "buffer.memory": _whole(0, INT64_MAX),
    "compression.type": _compression,
    "delivery.timeout.ms": _whole(1),
    "enable.idempotence": _boolean,
    "max.block.ms": _whole(0, INT64_MAX),
    "max.in.flight.requests.per.connection": _whole(1),
    "max.request.size": _whole(0),
    "partitioner.class": _partitioner,
    "partitioner.ignore.keys": _boolean,
    "retries": _whole(0),
    "transaction.timeout.ms": _whole(1),
    _level("gzip"): _gzip_level,
    _level("lz4"): _whole(1, 17),
    _level("zstd"): _whole(-131_072, 22),
}

OF_PRODUCERS: Final = _PARSERS.keys() | WITHOUT_EFFECT.keys() | REFUSED.keys()
"""Every name that is the producer's alone; what else is set goes to the client."""


def producer_settings(settings: Mapping[str, str]) -> tuple[ProducerSettings, list[str]]:
    """Read ``kafka.*`` settings, without their prefix, and say what is wrong with them."""
    problems = [message for name, message in REFUSED.items() if name in settings]
    read: dict[str, object] = {}
    for name in sorted(_PARSERS.keys() & settings.keys()):
        try:
            read[name] = _PARSERS[name](settings[name])
        except ValueError as error:
            problems.append(f"Option '{PREFIX}{name}' {error}, got '{settings[name]}'")
    fields: dict[str, Any] = {FIELDS[name]: value for name, value in read.items() if name in FIELDS}
    fields["compression_level"] = read.get(_level(str(read.get("compression.type"))))
    if settings.get("partitioner.class") == _UNIFORM_STICKY:
        # KIP-794 names these two as the same.
        fields["ignores_keys"] = True
    conflicts = idempotence_conflicts(ProducerSettings(**fields))
    if "enable.idempotence" not in read:
        # As Kafka's client 3.9: who asks for less than idempotence needs, and not for it, has none.
        fields["is_idempotent"] = not conflicts
    elif fields["is_idempotent"]:
        problems += conflicts
    return ProducerSettings(**fields), problems


def idempotence_conflicts(settings: ProducerSettings) -> list[str]:
    """Say, in the words of Java's ``ProducerConfig``, what idempotence cannot be had with."""
    problems = []
    if settings.acks != ALL_REPLICAS:
        problems.append(
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot "
            "guarantee idempotence."
        )
    if not settings.retries:
        problems.append("Must set retries to non-zero when using the idempotent producer.")
    if settings.max_in_flight > MAX_IN_FLIGHT:
        problems.append(
            "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent "
            "producer."
        )
    return problems
