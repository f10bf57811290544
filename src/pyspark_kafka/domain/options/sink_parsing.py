"""From the texts that a user gave to the options of a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import OptionsError
from ..kafka_settings import (
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    DEFAULT_API_TIMEOUT_MS,
    PREFIX,
    REFUSED,
    kafka_settings,
)
from ..option_values import is_positive_integer
from ..producer_settings import (
    OF_PRODUCERS,
    ProducerSettings,
    idempotence_conflicts,
    producer_settings,
)
from ..storage_path import StoragePath
from . import sink_table, table
from .option import QueryKind
from .reading import Reading, ignored, lower
from .sink_options import DeliveryGuarantee, SinkOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING_BOOTSTRAP_SERVERS: Final = (
    "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer"
)

_ITS_DIRECTORY: Final = "sinks/pyspark_kafka"
_OF_CONSUMERS: Final = REFUSED.keys()


def parse_sink_options(raw: Mapping[str, str], query: QueryKind) -> SinkOptions:
    """Read the options of a batch or a stream that is written.

    :raises OptionsError: with everything that is wrong, the settings that the JVM connector
        refuses first, unknown options last.
    """
    reading = Reading(lower(raw))
    settings = kafka_settings(reading.given)
    producer, problems = producer_settings(settings)
    reading.problems += problems
    reading.problems += _connection_problems(settings)
    client = reading.read(table.CLIENT)
    topic = reading.read(sink_table.TOPIC)
    guarantee = reading.read(sink_table.GUARANTEE)
    location = reading.read(sink_table.METADATA_PATH)
    storage_options = reading.read(table.METADATA_STORAGE_OPTIONS)
    checkpoint = reading.read(sink_table.CHECKPOINT_LOCATION)
    prefix = reading.read(sink_table.TRANSACTIONAL_ID_PREFIX)
    if query is QueryKind.BATCH:
        location = checkpoint = None
        if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            reading.problems.append(
                "deliveryGuarantee 'exactly-once' is for streams: what a batch query writes, it "
                "writes at least once"
            )
    elif guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        reading.problems += _exactly_once_problems(producer, location or checkpoint)
    reading.refuse_unknown(
        sink_table.TABLE, {option.key for option in table.TABLE} | sink_table.OF_SPARK
    )
    if reading.problems:
        raise OptionsError(reading.problems)
    return SinkOptions(
        client=client,
        topic=topic,
        guarantee=guarantee,
        metadata_path=_metadata_path(location, checkpoint, storage_options),
        checkpoint=StoragePath(checkpoint, storage_options)
        if checkpoint and not location
        else None,
        transactional_id_prefix=prefix,
        producer=producer,
        kafka=tuple(
            sorted(
                (name, settings[name]) for name in settings.keys() - OF_PRODUCERS - _OF_CONSUMERS
            )
        ),
    )


def ignored_sink_options(raw: Mapping[str, str], query: QueryKind) -> list[str]:
    """Name the options that were given and that a write of this kind does not look at."""
    return ignored(raw, query, sink_table.TABLE, table.TABLE)


def _connection_problems(settings: Mapping[str, str]) -> list[str]:
    problems = []
    timeout = settings.get(API_TIMEOUT_MS, str(DEFAULT_API_TIMEOUT_MS))
    if not is_positive_integer(timeout):
        problems.append(
            f"Option '{PREFIX}{API_TIMEOUT_MS}' must be a positive number of milliseconds, "
            f"got '{timeout}'"
        )
    if not settings.get(BOOTSTRAP_SERVERS):
        problems.append(MISSING_BOOTSTRAP_SERVERS)
    return problems


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


def _metadata_path(
    location: str | None, checkpoint: str | None, storage_options: str
) -> StoragePath | None:
    if location:
        return StoragePath(location, storage_options)
    if checkpoint:
        return StoragePath(f"{checkpoint.rstrip('/')}/{_ITS_DIRECTORY}", storage_options)
    return None
