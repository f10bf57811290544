"""Parsing the options of a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..checkpoints.storage_path import StoragePath
from ..errors import OptionsError
from ..kafka_settings.options import connection_problems
from ..kafka_settings.producer import (
    idempotence_conflicts,
    producer_settings,
    without_producer_settings,
)
from . import sink_table, table, value_table
from .client_settings import client_settings
from .option import QueryKind
from .policy import DEFAULT_POLICY
from .reading import Reading, ignored, lower
from .sink_options import DeliveryGuarantee, SinkOptions, sink_log_path
from .value_parsing import format_option_names, read_values, registry_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..kafka_settings import ProducerSettings
    from .policy import OptionPolicy

_TABLE: Final = (*sink_table.TABLE, *value_table.SINK_TABLE)
_SOURCE_TABLE: Final = (*table.TABLE, *value_table.TABLE)


def parse_sink_options(
    raw: Mapping[str, str], query: QueryKind, policy: OptionPolicy = DEFAULT_POLICY
) -> SinkOptions:
    """Return the options of a batch or a stream that is written.

    :raises DisallowedOptionError: if the policy forbids one.
    :raises OptionsError: with all problems: Kafka's settings first, then what needs the operator's
        permission, and unknown options last.
    """
    reading = Reading(lower(raw))
    settings = client_settings(reading)
    policy.check(settings)
    policy.check_options(registry_settings(reading))
    producer, problems = producer_settings(settings)
    reading.problems += problems + connection_problems(settings, "producer")
    for option in sink_table.TABLE:
        reading.read(option)
    location = reading.read(sink_table.METADATA_PATH)
    storage_options = reading.read(table.METADATA_STORAGE_OPTIONS)
    checkpoint = reading.read(sink_table.CHECKPOINT_LOCATION)
    is_exactly_once = reading.read(sink_table.GUARANTEE) is DeliveryGuarantee.EXACTLY_ONCE
    if query is QueryKind.BATCH:
        location = checkpoint = None
        if is_exactly_once:
            reading.problems.append(
                "deliveryGuarantee 'exactly-once' is for streams: a batch query writes records "
                "at least once"
            )
    elif is_exactly_once:
        reading.problems += _exactly_once_problems(producer, location or checkpoint)
    typed = read_values(reading, None)
    reading.problems += policy.problems(settings, reading.read(table.CLIENT))
    accepted = {option.key for option in _SOURCE_TABLE} | format_option_names(reading)
    reading.refuse_unknown(_TABLE, accepted | sink_table.SPARK_OPTIONS)
    if reading.problems:
        raise OptionsError(reading.problems)
    kept = None
    if checkpoint and (not location or _storage(location) == _storage(checkpoint)):
        kept = StoragePath(checkpoint, storage_options)
    return SinkOptions(
        **reading.read_fields(sink_table.TABLE),
        metadata_path=StoragePath(location, storage_options)
        if location
        else kept and sink_log_path(kept),
        checkpoint=kept,
        producer=producer,
        kafka=tuple(sorted(without_producer_settings(settings).items())),
        values=typed.values,
        registry=typed.registry,
    )


def ignored_sink_options(raw: Mapping[str, str], query: QueryKind) -> list[str]:
    """Return the names of the given options that a write of this kind ignores."""
    return ignored(raw, query, _TABLE, _SOURCE_TABLE)


def _exactly_once_problems(producer: ProducerSettings, location: str | None) -> list[str]:
    problems = []
    if not producer.is_idempotent:
        needed = "deliveryGuarantee 'exactly-once' needs 'kafka.enable.idempotence' to be true."
        problems.append(" ".join((needed, *idempotence_conflicts(producer))))
    if not location:
        problems.append(
            "deliveryGuarantee 'exactly-once' needs the option 'metadataPath' where "
            "'checkpointLocation' is not among the query's options"
        )
    return problems


def _storage(url: str) -> str:
    """Return the scheme and the host of a URL, which are empty for a path of this machine."""
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.partition('/')[0]}" if separator else ""
