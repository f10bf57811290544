"""Every option of the sink, once, as ``table`` holds those of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .option import STREAM_ONLY, Option
from .sink_options import DeliveryGuarantee
from .table import CLIENT, METADATA_STORAGE_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable


def _text(value: str) -> str:
    return value.strip()


def _named(problem: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if not value.strip():
            raise ValueError(problem)
        return value.strip()

    return parse


def _guarantee(text: str) -> DeliveryGuarantee:
    try:
        return DeliveryGuarantee(text.strip().lower())
    except ValueError:
        known = " or ".join(one.value for one in DeliveryGuarantee)
        raise ValueError(f"deliveryGuarantee must be {known}, got '{text}'") from None


TOPIC: Final[Option[str | None]] = Option(
    "topic",
    _named("topic must name a topic"),
    None,
    "a topic",
    "Writes all rows to this topic, whatever their column `topic` says. Needed where there is no "
    "such column.",
)
GUARANTEE: Final = Option(
    "deliveryGuarantee",
    _guarantee,
    DeliveryGuarantee.AT_LEAST_ONCE,
    "`at-least-once`, `exactly-once`",
    "With `exactly-once` each micro-batch is written in Kafka transactions, so that consumers "
    "with `isolation.level=read_committed` see its records once, whatever fails. It needs the "
    "client `kafka-python`. In a batch query it is refused.",
    "`at-least-once`",
)
METADATA_PATH: Final[Option[str | None]] = Option(
    "metadataPath",
    _named("metadataPath must name a directory"),
    None,
    "a directory, as an URL of fsspec",
    "Where `exactly-once` remembers which transactions belong to a micro-batch. It belongs to one "
    "query's sink and to no source, lives as long as the query's checkpoint, and every driver of "
    "the query has to reach it.",
    "`<checkpointLocation>/sinks/pyspark_kafka`",
    STREAM_ONLY,
)
TRANSACTIONAL_ID_PREFIX: Final = Option(
    "transactionalIdPrefix",
    _named("transactionalIdPrefix must not be empty"),
    "pyspark-kafka",
    "a text",
    "What the ids of transactions begin with, for the cluster's access rules; the query's id, the "
    "task's number and its attempt follow.",
    queries=STREAM_ONLY,
)
CHECKPOINT_LOCATION: Final[Option[str | None]] = Option(
    "checkpointLocation",
    _text,
    None,
    "a directory",
    "Spark's own option, which the sink sees as well: `metadataPath` is found by it.",
    queries=STREAM_ONLY,
)

TABLE: Final[tuple[Option[Any], ...]] = (
    CLIENT,
    TOPIC,
    GUARANTEE,
    METADATA_PATH,
    METADATA_STORAGE_OPTIONS,
    TRANSACTIONAL_ID_PREFIX,
    CHECKPOINT_LOCATION,
)

OF_SPARK: Final = frozenset({"queryname", "path", "outputmode"})
"""What Spark hands over that is its own."""
