"""Kafka's names of client settings, as librdkafka spells them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException, Producer

from ...domain.errors import OptionsError
from ...domain.java_settings import JavaSettings, not_known, read_java_settings, whole_number
from ...domain.kafka_settings import API_TIMEOUT_MS, GROUP_ID, ISOLATION_LEVEL, READ_UNCOMMITTED
from ...domain.option_values import INT32_MAX
from .tls import tls_config

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENT_NAME: Final = "confluent"

NUMBERS: Final[Mapping[str, tuple[str, int, int]]] = {
    "connections.max.idle.ms": ("connections.max.idle.ms", 1, INT32_MAX),
    "fetch.max.bytes": ("fetch.max.bytes", 1_000, 2_147_483_135),
    "fetch.max.wait.ms": ("fetch.wait.max.ms", 0, 300_000),
    "fetch.min.bytes": ("fetch.min.bytes", 1, 100_000_000),
    "max.partition.fetch.bytes": ("max.partition.fetch.bytes", 1, 1_000_000_000),
    "metadata.max.age.ms": ("topic.metadata.refresh.interval.ms", 1, 3_600_000),
    "metadata.recovery.rebootstrap.trigger.ms": (
        "metadata.recovery.rebootstrap.trigger.ms",
        0,
        INT32_MAX,
    ),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", 0, 100_000_000),
    "reconnect.backoff.max.ms": ("reconnect.backoff.max.ms", 0, 3_600_000),
    "reconnect.backoff.ms": ("reconnect.backoff.ms", 0, 3_600_000),
    "request.timeout.ms": ("socket.timeout.ms", 10, 300_000),
    "retry.backoff.max.ms": ("retry.backoff.max.ms", 1, 300_000),
    "retry.backoff.ms": ("retry.backoff.ms", 1, 300_000),
    "sasl.kerberos.min.time.before.relogin": (
        "sasl.kerberos.min.time.before.relogin",
        0,
        86_400_000,
    ),
    "send.buffer.bytes": ("socket.send.buffer.bytes", 0, 100_000_000),
    "socket.connection.setup.timeout.ms": (
        "socket.connection.setup.timeout.ms",
        1_000,
        INT32_MAX,
    ),
}
"""Java's settings that are numbers: librdkafka's name, and the least and most it takes."""

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "socket.connection.setup.timeout.max.ms": "librdkafka's time to connect does not grow",
}
"""Settings of Java's clients that this one has no equivalent of, each with the reason."""

_OURS: Final = frozenset({API_TIMEOUT_MS, GROUP_ID})

_NOT_TEXT: Final = frozenset({"default.topic.config", "logger", "opaque"})
"""What confluent-kafka takes as an object; of others, librdkafka's names have underscores."""

_MESSAGE_BYTES: Final = 1_000_000
"""librdkafka's ``message.max.bytes``, below which it refuses a ``fetch.max.bytes``."""

_FETCH_WAIT_MS: Final = 500
_SOCKET_TIMEOUT_MS: Final = 60_000
"""librdkafka's own ``fetch.wait.max.ms`` and ``socket.timeout.ms``."""

_KINIT: Final = "sasl.kerberos.kinit.cmd"


def client_config(settings: Mapping[str, str]) -> dict[str, str]:
    """Translate ``kafka.*`` settings, without their prefix, and read the files they name.

    What is librdkafka's own is passed on, and its values are checked when a client is made.

    :raises OptionsError: naming every setting that librdkafka does not know or cannot have.
    :raises MissingDependencyError: if a truststore is PKCS12 and the extra ``tls`` is missing.
    """
    java = read_java_settings(settings)
    problems = list(java.problems)
    # librdkafka reads committed records only unless told otherwise; Kafka's own client, and so
    # the JVM connector, reads all.
    config = {ISOLATION_LEVEL: READ_UNCOMMITTED, "security.protocol": java.protocol.lower()}
    own: dict[str, str] = {}
    for name in sorted(java.others.keys() - _OURS - WITHOUT_EFFECT.keys()):
        if name in NUMBERS:
            config |= _number(name, java.others[name])
        elif _is_known(name):
            own[name] = java.others[name]
        else:
            problems.append(not_known(name, CLIENT_NAME))
    for security in (_sasl, _tls):
        try:
            config |= security(java)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise OptionsError(problems)
    # Last, what was said in librdkafka's own words.
    return {**_in_order(config), **own, **_kinit(own)}


def _number(name: str, text: str) -> dict[str, str]:
    known, least, most = NUMBERS[name]
    if name == "connections.max.idle.ms" and int(text) < 0:
        return {known: "0"}
    return {known: str(whole_number(text, least, most))}


@lru_cache(maxsize=1_024)
def _is_known(name: str) -> bool:
    if name in _NOT_TEXT or ("_" in name and name != "log_level"):
        return False
    try:
        # The second one is never taken, so that no client comes to be; the first is asked first.
        Producer({name: None, "fetch.min.bytes": "none"})
    except KafkaException as error:
        return f'"{name}"' not in error.args[0].str() or "No such" not in error.args[0].str()
    return True


def _in_order(config: Mapping[str, str]) -> dict[str, str]:
    """Keep librdkafka's order of sizes and times, which Java's client does not ask for."""
    ordered = dict(config)
    if "fetch.max.bytes" in config:
        # It bounds what is produced, and nothing is.
        ordered["message.max.bytes"] = str(min(_MESSAGE_BYTES, int(config["fetch.max.bytes"])))
    wait = int(config.get("fetch.wait.max.ms", _FETCH_WAIT_MS))
    longest = max(0, int(config.get("socket.timeout.ms", _SOCKET_TIMEOUT_MS)) - 1_000)
    if wait > longest:
        ordered["fetch.wait.max.ms"] = str(longest)
    return ordered


def _sasl(java: JavaSettings) -> dict[str, str]:
    login = java.login
    if login is None:
        return {}
    config = {
        "sasl.mechanism": login.mechanism,
        "sasl.username": login.username,
        "sasl.password": str(login.password),
        "sasl.kerberos.service.name": login.service_name,
        "sasl.kerberos.keytab": login.keytab,
        "sasl.kerberos.principal": login.principal,
    }
    if login.uses_ticket_cache:
        # Whoever fills the ticket cache renews it, too.
        config["sasl.kerberos.min.time.before.relogin"] = "0"
    return {name: value for name, value in config.items() if value}


def _kinit(own: Mapping[str, str]) -> dict[str, str]:
    """Make librdkafka's command line of Java's path to ``kinit``."""
    path = own.get(_KINIT, "")
    if not path or "%{" in path:
        return {}
    login = '-t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'
    return {_KINIT: f"{path} -R {login} || {path} {login}"}


def _tls(java: JavaSettings) -> dict[str, str]:
    return {} if java.tls is None else tls_config(java.tls)
