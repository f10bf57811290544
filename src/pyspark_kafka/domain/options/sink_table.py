"""The options of sinks, except the options of values."""

from __future__ import annotations

import enum
from typing import Any, Final

from ..topic_partition import topic_name
from . import value_table
from .option import STREAM_ONLY, Option, required
from .source_table import CLIENT, METADATA_STORAGE_OPTIONS, TOKEN_PROVIDER, text_option


class DeliveryGuarantee(enum.Enum):
    """How often a consumer of committed records sees a record of a stream."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


def _guarantee(text: str) -> DeliveryGuarantee:
    try:
        return DeliveryGuarantee(text.strip().lower())
    except ValueError:
        known = " or ".join(one.value for one in DeliveryGuarantee)
        raise ValueError(f"deliveryGuarantee must be {known}, got '{text}'") from None


GUARANTEE: Final = Option(
    "deliveryGuarantee",
    _guarantee,
    DeliveryGuarantee.AT_LEAST_ONCE,
    "`at-least-once`, `exactly-once`",
    "With `exactly-once` each micro-batch is written in Kafka transactions, so that consumers "
    "with `isolation.level=read_committed` see each record once, even after failures. Requires the "
    "client `kafka-python` and, for micro-batches, Kafka 3.0 or newer. Batch queries refuse it.",
    "`at-least-once`",
    field="guarantee",
)


METADATA_PATH: Final[Option[str | None]] = Option(
    "metadataPath",
    required("metadataPath must name a directory"),
    None,
    "a directory, as a URL for fsspec",
    "Where `exactly-once` stores which transactions belong to a micro-batch. The directory must "
    "not be shared with another query or with a source. Keep it as long as the query's checkpoint, "
    "where every driver of the query can reach it.",
    "`<checkpointLocation>/sinks/pyspark_kafka`",
    STREAM_ONLY,
)


CHECKPOINT_LOCATION: Final = text_option(
    "checkpointLocation",
    "a directory",
    "Spark's own option, which Spark passes to the sink as well: the default of `metadataPath` "
    "is derived from it.",
    STREAM_ONLY,
)


SINK_TABLE: Final[tuple[Option[Any], ...]] = (
    CLIENT,
    Option(
        "topic",
        topic_name("topic"),
        None,
        "a topic",
        "Writes all rows to this topic and ignores the column `topic`. Required if there is no "
        "such column.",
        field="topic",
    ),
    GUARANTEE,
    METADATA_PATH,
    METADATA_STORAGE_OPTIONS,
    TOKEN_PROVIDER,
    Option(
        "transactionalIdPrefix",
        required("transactionalIdPrefix must not be empty"),
        "pyspark-kafka",
        "a text",
        "The prefix of all transactional ids, for the cluster's ACLs. The query's id and the "
        "task's number follow.",
        queries=STREAM_ONLY,
        field="transactional_id_prefix",
    ),
    CHECKPOINT_LOCATION,
)


ALL_SINK_OPTIONS: Final = (*SINK_TABLE, *value_table.SINK_TABLE)
