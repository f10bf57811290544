"""Options of reads and writes whose broker is never reached."""

from collections.abc import Mapping
from typing import Final

from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.security.policy import DEFAULT_POLICY, OptionPolicy

UNREACHED: Final = {"kafka.bootstrap.servers": "127.0.0.1:1"}
ADA: Final = {
    "kafka.bootstrap.servers": "b:9092",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="ada" password="secret";'
    ),
}
"""A user, and her password."""

EXACTLY_ONCE: Final = {"deliveryGuarantee": "exactly-once", "checkpointLocation": "memory://r"}

NONE: Final[Mapping[str, str]] = {}


def source_of(
    client: str, given: Mapping[str, str] = NONE, policy: OptionPolicy = DEFAULT_POLICY
) -> SourceOptions:
    """Return the options of a stream that reads the topic ``t``."""
    options = {**UNREACHED, "client": client, "subscribe": "t", **given}
    return parse_source_options(options, QueryKind.STREAM, policy)


def sink_of(client: str, given: Mapping[str, str] = NONE) -> SinkOptions:
    """Return the options of a stream that writes to the topic ``t``."""
    options = {**UNREACHED, "client": client, "topic": "t", **given}
    return parse_sink_options(options, QueryKind.STREAM)
