"""The ``kafka.*`` options: the client's settings, and the checks that every client needs."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from ..security.secret_names import is_secret
from .setting import PREFIX, Refused, Setting
from .table import (
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    BY_NAME,
    DEFAULT_API_TIMEOUT_MS,
    ISOLATION_LEVEL,
    SETTINGS,
)
from .values import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ADDRESS: Final = re.compile(
    r"(?:[\w.%-]*://)?(?:\[(?P<ipv6>[\w.%:-]+)\]|(?P<host>[\w.%-]+))(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)
"""As ``HOST_PORT_PATTERN`` of Kafka's class ``Utils``, which needs the port."""


def api_timeout_ms(settings: Mapping[str, str]) -> int:
    """Return the time-out of every call to a cluster, in milliseconds."""
    return int(settings.get(API_TIMEOUT_MS, DEFAULT_API_TIMEOUT_MS))


def server_list(text: str) -> list[str]:
    """Return the servers in ``bootstrap.servers``; Kafka's clients ignore empty parts as well."""
    return [server for server in map(str.strip, text.split(",")) if server]


def server_address(server: str) -> tuple[str, int] | None:
    """Return host and port of a bootstrap server, or ``None`` if it has another form.

    The port may be missing: kafka-python and librdkafka then take 9092.
    """
    found = _ADDRESS.fullmatch(server)
    if found is None or not 0 < (port := int(found["port"] or 9092)) < 65_536:
        return None
    return found["ipv6"] or found["host"], port


def kafka_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the ``kafka.*`` options without their prefix; ``given`` has lower-case names.

    kafka-python's underscores become dots in the settings that Java's clients have. Tools that show
    variables of a traceback show the ``repr`` of a secret.
    """
    return {
        _in_dots(name): Secret(value.strip()) if is_secret(name) else value.strip()
        for name, value in _without_prefix(given)
    }


def spelling_problems(given: Mapping[str, str]) -> list[str]:
    """Return which settings ``given`` has in two spellings."""
    spellings = Counter(_in_dots(name) for name, _ in _without_prefix(given))
    return [
        f"Option '{PREFIX}{name}' is set twice, with dots and with underscores: set it once"
        for name, count in sorted(spellings.items())
        if count > 1
    ]


def _without_prefix(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name.startswith(PREFIX):
            yield name.removeprefix(PREFIX), value


def _in_dots(name: str) -> str:
    dotted = name.replace("_", ".")
    return dotted if dotted in BY_NAME or dotted == BOOTSTRAP_SERVERS else name


def consumer_problems(settings: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the settings of a read, with any client."""
    effects = [setting.read for setting in SETTINGS if setting.name in settings]
    return [
        *(effect.message for effect in effects if isinstance(effect, Refused)),
        *_problems(BY_NAME[ISOLATION_LEVEL], settings),
        *connection_problems(settings, "consumer"),
    ]


def connection_problems(settings: Mapping[str, str], role: str) -> list[str]:
    """Return what is wrong with the settings of any connection; ``role`` is the client's."""
    problems = _problems(BY_NAME[API_TIMEOUT_MS], settings)
    if not server_list(settings.get(BOOTSTRAP_SERVERS, "")):
        problems.append(
            f"Option 'kafka.bootstrap.servers' must be specified for configuring Kafka {role}"
        )
    elif "@" in settings[BOOTSTRAP_SERVERS]:
        # It may be a user's password: it is not repeated, here or by a client that cannot connect.
        problems.append(
            "Option 'kafka.bootstrap.servers' must be host:port, without a user: set the login in "
            "'kafka.sasl.jaas.config'"
        )
    return problems


def server_problems(servers: str) -> list[str]:
    """Return which servers Kafka's clients cannot use; clients of others may read them otherwise.

    They are not repeated: one may be a connection string with a key.
    """
    return [
        "Option 'kafka.bootstrap.servers' must be host:port, separated by commas: number "
        f"{number} is not"
        for number, each in enumerate(server_list(servers), 1)
        if server_address(each) is None
    ]


def _problems(setting: Setting, settings: Mapping[str, str]) -> list[str]:
    if setting.values and setting.name in settings:
        try:
            setting.values.read(setting.name, settings[setting.name])
        except ValueError as error:
            return [str(error)]
    return []
