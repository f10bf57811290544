"""The most usual mistakes of beginners, and the first line that each of them gets to see.

Tests make each mistake on the command line and in Spark; ``docs/mistake_page.py`` shows the table.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.text import find_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .servers.secured import SecuredBroker


class Query(enum.Enum):
    """The kind of query, or the command, in which somebody makes a mistake."""

    READ = "read"
    BATCH = "batch read"
    STREAM = "stream"
    WRITE = "write"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake, and a part of the first line with its error, from the condition on.

    ``options`` change those of a query that works; ``None`` leaves one out. ``{tls}``, ``{sasl}``,
    ``{topic}`` and ``{missing}`` stand for a listener that expects TLS, for one that expects a
    login by PLAIN, for a topic with two partitions, and for a path at which nothing is.
    """

    does: str
    sees: str
    options: Mapping[str, str | None] = field(default_factory=dict)
    query: Query = Query.READ
    columns: str = "'v' value"
    arguments: tuple[str, ...] = ()

    def given(self, working: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
        """Return the options of the query."""
        changed = {name: text and text.format(**places) for name, text in self.options.items()}
        return {name: text for name, text in {**working, **changed}.items() if text is not None}


def first_line(text: str) -> str:
    """Return the line by which the text of an exception of Spark says what is wrong."""
    found = find_error(text)
    assert found is not None, text
    return " ".join(found.text.split())


SERVERS: Final = "kafka.bootstrap.servers"
_PROTOCOL: Final = "kafka.security.protocol"
_MECHANISM: Final = "kafka.sasl.mechanism"
_JAAS: Final = "kafka.sasl.jaas.config"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_LOGIN: Final = f'{_PLAIN} username="ann" password="wrong";'
_VALUE: Final = {"valueFormat": "json", "valueSchema": "id BIGINT"}

MISTAKES: Final[Mapping[str, tuple[Mistake, ...]]] = {
    "Options": (
        Mistake(
            "a read without a topic",
            (
                "One of the following options must be specified for Kafka source: subscribe, "
                "subscribepattern, assign"
            ),
            {"subscribe": None},
        ),
        Mistake(
            "a query without brokers",
            "Option 'kafka.bootstrap.servers' must be specified",
            {SERVERS: None},
        ),
        Mistake(
            "`bootstrap.servers` without `kafka.` before it",
            "Option 'bootstrap.servers' is not known. Did you mean 'kafka.bootstrap.servers'?",
            {SERVERS: None, "bootstrap.servers": "localhost:9092"},
        ),
        Mistake(
            "`startingOffset` for `startingOffsets`",
            "Option 'startingoffset' is not known. Did you mean 'startingOffsets'?",
            {"startingOffset": "earliest"},
        ),
        Mistake(
            "`kafka.security.protcol`",
            "Did you mean 'kafka.security.protocol'?",
            {"kafka.security.protcol": "SSL"},
        ),
        Mistake(
            "`kafka.auto.offset.reset`",
            (
                "Kafka option 'auto.offset.reset' is not supported. Instead set the source "
                "option 'startingoffsets'"
            ),
            {"kafka.auto.offset.reset": "earliest"},
        ),
        Mistake(
            "`kafka.key.deserializer`",
            (
                "Kafka option 'key.deserializer' is not supported as keys are deserialized "
                "as byte arrays"
            ),
            {"kafka.key.deserializer": "StringDeserializer"},
        ),
        Mistake(
            "`kafka.enable.auto.commit`",
            "Kafka option 'enable.auto.commit' is not supported",
            {"kafka.enable.auto.commit": "true"},
        ),
        Mistake(
            "`subscribe` and `subscribePattern`",
            (
                "Only one of the following options can be specified for Kafka source: "
                "subscribe, subscribepattern, assign"
            ),
            {"subscribePattern": "orders.*"},
        ),
        Mistake(
            "`client=confluent-kafka`",
            "Client 'confluent-kafka' is not known. Known clients are 'confluent', 'kafka-python'",
            {"client": "confluent-kafka"},
        ),
        Mistake(
            "`failOnDataLoss=no`",
            "Option 'failOnDataLoss': For input string: \"no\"",
            {"failOnDataLoss": "no"},
        ),
        Mistake(
            "`maxOffsetsPerTrigger=10k`",
            "Option 'maxOffsetsPerTrigger': For input string: \"10k\"",
            {"maxOffsetsPerTrigger": "10k"},
            Query.STREAM,
        ),
    ),
    "Brokers": (
        Mistake(
            "an address where nothing listens",
            "No Kafka broker answered at 127.0.0.1:1 within",
            {SERVERS: "127.0.0.1:1"},
        ),
        Mistake(
            "a broker without its port",
            "'127.0.0.2' has no port, so 9092 was tried: write host:port",
            {SERVERS: "127.0.0.2"},
        ),
        Mistake(
            "the name of a host that does not exist",
            "No Kafka broker answered at kafka.invalid:9092 within",
            {SERVERS: "kafka.invalid:9092"},
        ),
        Mistake(
            "a URL for a broker",
            "Option 'kafka.bootstrap.servers' must be host:port, separated by commas",
            {SERVERS: "http://localhost:9092/"},
        ),
        Mistake(
            "brokers with semicolons between them",
            "Option 'kafka.bootstrap.servers' must be host:port, separated by commas",
            {SERVERS: "a:9092;b:9092"},
        ),
        Mistake(
            "a user's name and password in the address",
            "must be host:port, without a user: set the login in 'kafka.sasl.jaas.config'",
            {SERVERS: "ann:x@localhost:9092"},
        ),
    ),
    "Protocols and logins": (
        Mistake(
            "no `kafka.security.protocol` for a listener with TLS",
            "The listener expects TLS: set 'kafka.security.protocol' to SSL or SASL_SSL",
            {SERVERS: "{tls}"},
        ),
        Mistake(
            "no login at a listener that expects one",
            "The listener may expect TLS or a login: set 'kafka.security.protocol'",
            {SERVERS: "{sasl}"},
        ),
        Mistake(
            "TLS at a listener without it",
            (
                "The port does not speak TLS: check the port in 'kafka.bootstrap.servers' "
                "and 'kafka.security.protocol'"
            ),
            {_PROTOCOL: "SSL"},
        ),
        Mistake(
            "`SASL-SSL` for `SASL_SSL`",
            (
                "Option 'kafka.security.protocol' must be one of PLAINTEXT, SSL, "
                "SASL_PLAINTEXT, SASL_SSL"
            ),
            {_PROTOCOL: "SASL-SSL"},
        ),
        Mistake(
            "a login by `PLAIN` without `kafka.sasl.jaas.config`",
            (
                "Option 'kafka.sasl.mechanism' PLAIN requires a user name and a password in "
                "'kafka.sasl.jaas.config'"
            ),
            {_PROTOCOL: "SASL_SSL", _MECHANISM: "PLAIN"},
        ),
        Mistake(
            "the login module of `PLAIN` for `SCRAM-SHA-512`",
            "PlainLoginModule requires 'kafka.sasl.mechanism' PLAIN, not SCRAM-SHA-512",
            {_PROTOCOL: "SASL_SSL", _MECHANISM: "SCRAM-SHA-512", _JAAS: _LOGIN},
        ),
        Mistake(
            "a wrong password",
            "Correct the login in the options 'kafka.sasl.*'",
            {SERVERS: "{sasl}", _PROTOCOL: "SASL_PLAINTEXT", _MECHANISM: "PLAIN", _JAAS: _LOGIN},
        ),
        Mistake(
            "a trust store that does not exist",
            (
                "Option 'kafka.ssl.truststore.location': '{missing}' cannot be read (No such "
                "file or directory)"
            ),
            {_PROTOCOL: "SSL", "kafka.ssl.truststore.location": "{missing}"},
        ),
    ),
    "Topics and offsets": (
        Mistake(
            "a topic that does not exist",
            "Create the topic, or correct the option 'subscribe'",
            {"subscribe": "ordres"},
        ),
        Mistake(
            "a name that no topic can have",
            "subscribe must name topics, got 'my orders': a name has 1 to 249 letters",
            {"subscribe": "my orders"},
        ),
        Mistake(
            "`*` for a pattern",
            "Option 'subscribePattern': not a regular expression: '*'",
            {"subscribe": None, "subscribePattern": "*"},
        ),
        Mistake(
            "topics in `assign`",
            "No topicpartitions to assign as specified value for option 'assign' is 'orders'",
            {"subscribe": None, "assign": "orders"},
        ),
        Mistake(
            "`startingOffsets=earlyest`",
            "got earlyest. Did you mean 'earliest'?",
            {"startingOffsets": "earlyest"},
        ),
        Mistake(
            "a batch read with `startingOffsets=latest`",
            "starting offset can't be latest for batch queries on Kafka",
            {"startingOffsets": "latest"},
            Query.BATCH,
        ),
        Mistake(
            "a date in `startingTimestamp`",
            "Option 'startingTimestamp': Expected a single long value, got 2026-01-31",
            {"startingTimestamp": "2026-01-31"},
        ),
        Mistake(
            "`startingOffsets` without some of the partitions",
            "Partitions specified for Kafka start offsets don't match what are assigned",
            {"startingOffsets": '{{"{topic}":{{"0":5}}}}'},
            Query.BATCH,
        ),
    ),
    "Formats and schemas": (
        Mistake(
            "`valueFormat=xml`",
            "Format 'xml' is not known. Known formats are avro, json, protobuf",
            {"valueFormat": "xml"},
        ),
        Mistake(
            "`valueFormat=json` without a schema",
            "'valueSchema' is needed to read JSON: DDL such as 'a int, b string'",
            {"valueFormat": "json"},
        ),
        Mistake(
            "`valueFormat=avro` without a schema",
            (
                "Option 'valueSchema' is not a usable Avro schema: it is needed, or a schema "
                "registry that has the schema"
            ),
            {"valueFormat": "avro"},
        ),
        Mistake(
            "a type that does not exist",
            "Option 'valueSchema': the type 'NUMBER' is not known",
            {**_VALUE, "valueSchema": "id NUMBER"},
        ),
        Mistake(
            "`mode=PERMISIVE`",
            "mode must be one of 'FAILFAST', 'PERMISSIVE', 'DROPMALFORMED', got 'PERMISIVE'",
            {**_VALUE, "mode": "PERMISIVE"},
        ),
    ),
    "Writes": (
        Mistake(
            "a write without a topic",
            "topic option required when no 'topic' attribute is present",
            {"topic": None},
            Query.WRITE,
        ),
        Mistake(
            "rows without a column `value`",
            "Required attribute 'value' not found",
            query=Query.WRITE,
            columns="'v' payload",
        ),
        Mistake(
            "numbers in `value`",
            "value attribute unsupported type int. value must be a(n) string or binary",
            query=Query.WRITE,
            columns="5 value",
        ),
        Mistake(
            "a struct in `value`",
            "To write a struct, set the option 'valueFormat'",
            query=Query.WRITE,
            columns="struct(5 id) value",
        ),
        Mistake(
            "two columns `value`",
            "Column 'value' exists 2 times. Drop or rename all but one of them",
            query=Query.WRITE,
            columns="'v' value, 'w' value",
        ),
    ),
    "Command line": (
        Mistake(
            "a mistyped command",
            "Did you mean 'topics'?",
            query=Query.COMMAND,
            arguments=("topcs",),
        ),
        Mistake(
            "a mistyped option",
            "Did you mean '--bootstrap-servers'?",
            query=Query.COMMAND,
            arguments=("topics", "--bootstap-servers", "localhost:9092"),
        ),
        Mistake(
            "an option without `=`",
            "argument --option: an option has the form name=value",
            query=Query.COMMAND,
            arguments=("topics", "--option", "includeHeaders"),
        ),
        Mistake(
            "a password on the command line",
            (
                "'kafka.sasl.password' holds a secret, and other users of this machine can "
                "read the command line; write it to a file and pass the file with --command-config"
            ),
            query=Query.COMMAND,
            arguments=("topics", "--option", "kafka.sasl.password=x"),
        ),
        Mistake(
            "a file of settings that does not exist",
            "argument --command-config: '{missing}' cannot be read",
            query=Query.COMMAND,
            arguments=("topics", "--command-config", "{missing}"),
        ),
        Mistake(
            "a path that is no checkpoint",
            "There is no checkpoint of a streaming query",
            query=Query.COMMAND,
            arguments=("offsets", "show", "{missing}"),
        ),
    ),
}


def name(value: object) -> str | None:
    """Return the part of a test's name that stands for a mistake or a kind of query."""
    return value.does if isinstance(value, Mistake) else getattr(value, "value", None)


def places_of(secured: SecuredBroker, folder: Path, topic: str) -> dict[str, str]:
    """Return what the placeholders of a mistake stand for."""
    return {
        "tls": secured.tls,
        "sasl": secured.sasl_plaintext,
        "topic": topic,
        "missing": str(folder / "missing"),
    }
