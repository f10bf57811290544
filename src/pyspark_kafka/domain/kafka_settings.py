"""The options that go to the Kafka client: ``kafka.*``, and which of them are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .option_values import is_positive_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "kafka."
BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
GROUP_ID: Final = "group.id"
ISOLATION_LEVEL: Final = "isolation.level"
API_TIMEOUT_MS: Final = "default.api.timeout.ms"
DEFAULT_API_TIMEOUT_MS: Final = 30_000
"""Half of what Kafka's Java client has: a wrong address should not take a minute to tell."""

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"

_AUTO_OFFSET_RESET: Final = """
Kafka option 'auto.offset.reset' is not supported.
Instead set the source option 'startingoffsets' to 'earliest' or 'latest'
to specify where to start. Structured Streaming manages which offsets are consumed
internally, rather than relying on the kafkaConsumer to do it. This will ensure that no
data is missed when new topics/partitions are dynamically subscribed. Note that
'startingoffsets' only applies when a new Streaming query is started, and
that resuming will always pick up from where the query left off. See the docs for more
details.
         """

REFUSED: Final[Mapping[str, str]] = {
    # The order and the words are those of KafkaSourceProvider.validateGeneralOptions.
    "auto.offset.reset": _AUTO_OFFSET_RESET,
    "key.deserializer": (
        "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte "
        "arrays with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize "
        "the keys."
    ),
    "value.deserializer": (
        "Kafka option 'value.deserializer' is not supported as values are deserialized as byte "
        "arrays with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize "
        "the values."
    ),
    "enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}

MISSING_BOOTSTRAP_SERVERS: Final = (
    "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
)


def api_timeout_ms(settings: Mapping[str, str]) -> int:
    """Give the bound, in milliseconds, of every call to a cluster."""
    return int(settings.get(API_TIMEOUT_MS, DEFAULT_API_TIMEOUT_MS))


def kafka_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Take the ``kafka.*`` options, without their prefix; ``given`` has lower-case names."""
    return {
        name.removeprefix(PREFIX): value.strip()
        for name, value in given.items()
        if name.startswith(PREFIX)
    }


def refused_settings(settings: Mapping[str, str]) -> list[str]:
    """Say what is wrong with the settings, whichever client is to have them."""
    problems = [message for name, message in REFUSED.items() if name in settings]
    level = settings.get(ISOLATION_LEVEL, READ_UNCOMMITTED)
    if level not in (READ_COMMITTED, READ_UNCOMMITTED):
        problems.append(
            f"Option 'kafka.isolation.level' must be '{READ_UNCOMMITTED}' or '{READ_COMMITTED}', "
            f"got '{level}'"
        )
    timeout = settings.get(API_TIMEOUT_MS, str(DEFAULT_API_TIMEOUT_MS))
    if not is_positive_integer(timeout):
        problems.append(
            f"Option 'kafka.{API_TIMEOUT_MS}' must be a positive number of milliseconds, "
            f"got '{timeout}'"
        )
    if not settings.get(BOOTSTRAP_SERVERS):
        problems.append(MISSING_BOOTSTRAP_SERVERS)
    return problems
