"""The settings of Kafka's Java producer, as values for either client.

Meanings and conflicts are the same as in Java's ``ProducerConfig``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from ..option_values import INT32_MAX
from .setting import ProducerField, Refused
from .table import ALL_REPLICAS, BY_NAME, SETTINGS, UNIFORM_STICKY

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_IN_FLIGHT: Final = 5
"""The requests in flight whose order a broker can restore by their sequence numbers."""


@final
@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How records are written; sizes in bytes.

    ``partitioner`` is ``None``, ``ROUND_ROBIN``, or a Python function, ``module:function``.
    ``compression_level`` is ``None`` for the codec's own default.
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


def producer_settings(settings: Mapping[str, str]) -> tuple[ProducerSettings, list[str]]:
    """Return the producer's settings among ``kafka.*`` settings, and what is wrong with them."""
    effects = [setting.write for setting in SETTINGS if setting.name in settings]
    problems = [effect.message for effect in effects if isinstance(effect, Refused)]
    fields: dict[str, Any] = {}
    levels: dict[str, Any] = {}
    for name in sorted(settings.keys() & BY_NAME.keys()):
        write = BY_NAME[name].write
        if isinstance(write, ProducerField):
            try:
                value = write.values.read(name, settings[name])
            except ValueError as error:
                problems.append(str(error))
            else:
                (fields if write.name else levels)[write.name or name] = value
    fields["compression_level"] = levels.get(f"compression.{fields.get('compression')}.level")
    if settings.get("partitioner.class") == UNIFORM_STICKY:
        # KIP-794 defines the two as the same.
        fields["ignores_keys"] = True
    conflicts = idempotence_conflicts(ProducerSettings(**fields))
    if "is_idempotent" not in fields:
        # As in Kafka 3.9: a conflicting setting turns idempotence off unless it was set.
        fields["is_idempotent"] = not conflicts
    elif fields["is_idempotent"]:
        problems += conflicts
    return ProducerSettings(**fields), problems


def without_producer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a sink's client: neither the producer's nor those a read refuses."""
    return {
        name: value
        for name, value in settings.items()
        if name not in BY_NAME
        or (BY_NAME[name].write is None and not isinstance(BY_NAME[name].read, Refused))
    }


def idempotence_conflicts(settings: ProducerSettings) -> list[str]:
    """Return, in the words of Java's ``ProducerConfig``, which settings rule out idempotence."""
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
