"""The options of the sink that writes a query's dead letters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..errors import OptionsError
from ..kafka_settings.producer import producer_settings, without_producer_settings
from ..kafka_settings.setting import Refused
from ..kafka_settings.table import BY_NAME
from ..option_values import INT32_MAX
from .sink_options import DeliveryGuarantee, SinkOptions

if TYPE_CHECKING:
    from .source_options import SourceOptions

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
