"""What librdkafka's handles have in common: how they are made, and their lines."""

from __future__ import annotations

import ctypes
import logging
from typing import TYPE_CHECKING, Final

from .connection import log
from .librdkafka import EVENT_ERROR, EVENT_LOG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .connection import Connection

ERROR_SIZE: Final = 512
"""The bytes that librdkafka is given for an error's text."""

_QUEUE: Final = {
    # Lines and errors come when they are asked for, and librdkafka's threads call no Python.
    "log.queue": "true",
}

_LEVELS: Final = (
    *(logging.CRITICAL,) * 3,
    logging.ERROR,
    *(logging.WARNING,) * 2,
    logging.INFO,
    logging.DEBUG,
)
"""The levels of ``logging`` for those of syslog."""


def new_client(
    library: ctypes.CDLL,
    kind: int,
    connection: Connection,
    config: Mapping[str, str],
    events: int = 0,
) -> tuple[int, int]:
    """Make a handle and take its main queue, into which lines, errors and ``events`` come.

    :raises OptionsError: if librdkafka does not know or accept a setting.
    """
    client = _new(library, kind, connection, {**config, **_QUEUE}, events)
    main_queue: int = library.rd_kafka_queue_get_main(client)
    library.rd_kafka_set_log_queue(client, None)
    # Tokens are renewed by a thread of librdkafka's: this one may be elsewhere for long.
    refused = library.rd_kafka_sasl_background_callbacks_enable(client)
    if refused:  # there is no mechanism with tokens
        library.rd_kafka_error_destroy(refused)
    return client, main_queue


def log_event(library: ctypes.CDLL, event: int, name: str) -> None:
    """Hand a line to the logger, with the name of its handle."""
    facility, text, level = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_int()
    if library.rd_kafka_event_log(
        event, ctypes.byref(facility), ctypes.byref(text), ctypes.byref(level)
    ):
        return
    log.log(
        _LEVELS[min(level.value, len(_LEVELS) - 1)],
        "%s [%s] %s",
        (facility.value or b"").decode(errors="replace"),
        name,
        (text.value or b"").decode(errors="replace"),
    )


def _new(
    library: ctypes.CDLL,
    kind: int,
    connection: Connection,
    config: Mapping[str, str],
    events: int,
) -> int:
    reason = ctypes.create_string_buffer(ERROR_SIZE)
    made = library.rd_kafka_conf_new()
    is_accepted = not any(
        library.rd_kafka_conf_set(made, name.encode(), value.encode(), reason, ERROR_SIZE)
        for name, value in config.items()
    )
    library.rd_kafka_conf_set_events(made, EVENT_LOG | EVENT_ERROR | events)
    library.rd_kafka_conf_enable_sasl_queue(made, 1)
    client: int | None = None
    if is_accepted:
        client = library.rd_kafka_new(kind, made, reason, ERROR_SIZE)
    if client is None:
        library.rd_kafka_conf_destroy(made)  # only a client that is made owns it
        raise connection.refused(reason.value.decode(errors="replace"))
    return client
