"""The options of a sink as values, and their parser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from ..checkpoints.storage_path import StoragePath
from ..errors import OptionsError
from ..security.policy import DEFAULT_POLICY
from ..security.secrets import hides_secrets
from . import source_table as table
from .client_settings import (
    ClientOptions,
    client_settings,
    connection_problems,
    idempotence_conflicts,
    producer_settings,
    unprefixed,
    without_producer_settings,
)
from .option import INT32_MAX, QueryKind, Reading, ignored, lower
from .settings_table import BY_NAME, Refused
from .sink_table import (
    ALL_SINK_OPTIONS,
    CHECKPOINT_LOCATION,
    GUARANTEE,
    METADATA_PATH,
    SINK_TABLE,
    DeliveryGuarantee,
)
from .value_table import ALL_SOURCE_OPTIONS
from .values import format_option_names, read_values, registry_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..security.policy import OptionPolicy
    from ..values.value_options import EncodedColumn
    from .client_settings import ProducerSettings
    from .source import SourceOptions


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class SinkOptions(ClientOptions):
    """The options of one sink, parsed and checked. Pickled to executors.

    ``kafka`` is without the producer's own settings. ``metadata_path`` is never ``None`` for
    ``EXACTLY_ONCE``; ``checkpoint`` is ``None`` if it is on another storage. ``encoded`` has those
    of ``values`` whose schemas the driver has settled.
    """

    topic: str | None
    guarantee: DeliveryGuarantee
    metadata_path: StoragePath | None
    checkpoint: StoragePath | None
    transactional_id_prefix: str
    producer: ProducerSettings
    encoded: tuple[EncodedColumn, ...] = ()

    @property
    def restricted_settings(self) -> dict[str, str]:
        """The settings that the operator's policy applies to."""
        partitioner = self.producer.partitioner
        return dict(self.kafka) | ({"partitioner.class": partitioner} if partitioner else {})

    @property
    def is_exactly_once(self) -> bool:
        """Whether records are written in transactions."""
        return self.guarantee is DeliveryGuarantee.EXACTLY_ONCE

    @property
    def is_log_in_checkpoint(self) -> bool:
        """Whether the sink's log is a part of the checkpoint, which must be readable then."""
        return self.checkpoint is not None and self.metadata_path == sink_log_path(self.checkpoint)


def sink_log_path(checkpoint: StoragePath) -> StoragePath:
    """Return the default of ``metadataPath``."""
    return StoragePath(
        f"{checkpoint.url.rstrip('/')}/sinks/pyspark_kafka", checkpoint.storage_options
    )


SPARK_OPTIONS: Final = frozenset({"queryname", "path", "outputmode"})
"""Options of Spark's own that it passes to a sink."""


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
    for option in SINK_TABLE:
        reading.read(option)
    location = reading.read(METADATA_PATH)
    storage_options = reading.read(table.METADATA_STORAGE_OPTIONS)
    checkpoint = reading.read(CHECKPOINT_LOCATION)
    is_exactly_once = reading.read(GUARANTEE) is DeliveryGuarantee.EXACTLY_ONCE
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
    accepted = {option.key for option in ALL_SOURCE_OPTIONS} | format_option_names(reading)
    wrong = unprefixed(reading.given)
    reading.problems += wrong.values()
    reading.refuse_unknown(ALL_SINK_OPTIONS, accepted | SPARK_OPTIONS | wrong.keys())
    if reading.problems:
        raise OptionsError(reading.problems)
    kept = None
    if checkpoint and (not location or _storage(location) == _storage(checkpoint)):
        kept = StoragePath(checkpoint, storage_options)
    return SinkOptions(
        **reading.read_fields(SINK_TABLE),
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
    return ignored(raw, query, ALL_SINK_OPTIONS, ALL_SOURCE_OPTIONS)


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


_CHOSEN_HERE: Final = frozenset(
    {
        "acks",
        "enable.idempotence",
        "max.in.flight.requests.per.connection",
        "partitioner.class",
        "partitioner.ignore.keys",
        "retries",
    }
)
"""A letter must not be lost, and its key decides its partition."""


def dead_letter_sink(source: SourceOptions, topic: str | None) -> SinkOptions:
    """Return options that write letters with the query's client and its ``kafka.*`` settings.

    All replicas acknowledge a letter, and it may be as large as the largest record that is read.

    :raises OptionsError: if a producer's setting is invalid.
    """
    settings = dict(source.kafka)
    producer, problems = producer_settings(
        {name: value for name, value in settings.items() if _is_taken(name)}
    )
    if problems:
        raise OptionsError(problems)
    largest = min(INT32_MAX, source.max_record_bytes + source.max_record_header_bytes)
    request_size = max(producer.max_request_size, largest)
    return SinkOptions(
        client=source.client,
        topic=topic,
        guarantee=DeliveryGuarantee.AT_LEAST_ONCE,
        metadata_path=None,
        checkpoint=None,
        transactional_id_prefix="pyspark-kafka",
        producer=replace(
            producer,
            max_request_size=request_size,
            buffer_memory=max(producer.buffer_memory, request_size),
        ),
        kafka=tuple(sorted(without_producer_settings(settings).items())),
    )


def _is_taken(name: str) -> bool:
    """Return whether a setting of a read applies to its letters as well."""
    setting = BY_NAME.get(name)
    is_refused = setting is not None and isinstance(setting.write, Refused)
    return name not in _CHOSEN_HERE and not is_refused
