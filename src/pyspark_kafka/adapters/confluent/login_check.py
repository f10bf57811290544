"""A first login by a client of its own, which is closed as soon as a broker refuses it.

librdkafka logs in again and again: after 50 ms, on each address of a broker, on each broker, and
while a call waits that cannot be told. One client for one broker logs in once.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Final

from ...domain.options.option import server_list
from ...ports.clock import Deadline
from .client_closing import close_in_time
from .client_handle import handle_event, new_client
from .librdkafka import EVENT_ERROR, PRODUCER, load

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping

    from .connection import Connection

_MAX_CHECK_S: Final = 2.0
"""How long brokers that do not answer delay the first client, at most."""

_MAX_SHARE: Final = 4
"""Of the time-out of requests, this part at most."""

_QUIET_S: Final = 0.1
"""How long to wait after an error: a broker may have further addresses."""

_PASSED: Final = (
    *("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https."),
    *("socket.", "broker.address.", "client."),
)

_FORCED: Final = {
    # The handle is closed long before it would connect again.
    "reconnect.backoff.ms": "60000",
    "reconnect.backoff.max.ms": "60000",
    "metadata.recovery.strategy": "none",
}

_SERVERS: Final = "bootstrap.servers"

_IS_UP: Final = "-> UP"
"""The end of librdkafka's line, with ``debug=broker``, when a login has succeeded."""


def check_login(connection: Connection, config: Mapping[str, str]) -> bool:
    """Log in at one broker; return whether it succeeded, ``False`` if none answered in time.

    :raises AuthenticationError: if the broker refuses the login.
    :raises TlsError: if the TLS handshake fails.
    """
    library = load()
    passed = {name: value for name, value in config.items() if name.startswith(_PASSED)}
    debug = ",".join(filter(None, (config.get("debug"), "broker")))
    servers = server_list(config.get(_SERVERS, ""))
    random.shuffle(servers)
    deadline = Deadline.after(min(_MAX_CHECK_S, connection.timeout_s / _MAX_SHARE))
    return any(
        _logs_in(
            library, connection, {**passed, **_FORCED, "debug": debug, _SERVERS: server}, deadline
        )
        for server in servers
        if not deadline.has_passed
    )


def _logs_in(
    library: ctypes.CDLL, connection: Connection, config: Mapping[str, str], deadline: Deadline
) -> bool:
    client, queue = new_client(library, PRODUCER, connection, config)
    name = library.rd_kafka_name(client).decode()
    lines: list[str] = []
    quiet = Deadline.after(None)
    try:
        while not (deadline.has_passed or quiet.has_passed):
            wait_s = min(deadline.remaining, quiet.remaining)
            event = library.rd_kafka_queue_poll(queue, round(wait_s * 1_000))
            if not event:
                continue
            lines.clear()
            kind = handle_event(library, event, name, connection, lines.append)
            library.rd_kafka_event_destroy(event)
            connection.raise_refusal()
            if any(line.endswith(_IS_UP) for line in lines):
                return True
            if kind == EVENT_ERROR:
                quiet = Deadline.after(_QUIET_S)
        return False
    finally:
        library.rd_kafka_queue_destroy(queue)
        close_in_time(partial(_destroy, library, client, connection))


def _destroy(library: ctypes.CDLL, client: int, _called_until_then: Connection) -> None:
    library.rd_kafka_destroy(client)
