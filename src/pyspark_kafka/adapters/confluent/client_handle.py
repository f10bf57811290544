"""Creating librdkafka's handles, and handling their events."""

from __future__ import annotations

import ctypes
import logging
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

from .librdkafka import EVENT_ERROR, EVENT_LOG
from .tokens import set_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .connection import Connection

log = logging.getLogger("pyspark_kafka.librdkafka")
# Without a handler, librdkafka's lines would all go to standard error.
log.addHandler(logging.NullHandler())

ERROR_SIZE: Final = 512
"""The bytes of a buffer for the text of an error."""

_WAKE_UP: Final = b"."
_NO_FILE: Final = -1

_QUEUE: Final = {
    # Log lines and errors are polled, so that librdkafka's threads never call Python.
    "log.queue": "true"
}

LOG_INFO: Final = 6
LOG_DEBUG: Final = 7
"""Levels of syslog."""

LEVELS: Final = (
    *(logging.CRITICAL,) * 3,
    logging.ERROR,
    *(logging.WARNING,) * 2,
    logging.INFO,
    logging.DEBUG,
)
"""The levels of ``logging`` by syslog's."""


def new_client(
    library: ctypes.CDLL,
    kind: int,
    connection: Connection,
    config: Mapping[str, str],
    events: int = 0,
) -> tuple[int, int]:
    """Return a new handle and its main queue, for log lines, errors and ``events``.

    :raises OptionsError: if librdkafka does not know or accept a setting.
    :raises AuthenticationError: if the login needs a token, which its issuer refuses.
    :raises TokenUnavailableError: if the issuer cannot be asked.
    """
    token = None if connection.tokens is None else connection.tokens.token()
    client = _new(library, kind, connection, {**config, **_QUEUE}, events)
    main_queue: int = library.rd_kafka_queue_get_main(client)
    library.rd_kafka_set_log_queue(client, None)
    # A thread of librdkafka's renews tokens: this one may not poll for a long time.
    error = library.rd_kafka_sasl_background_callbacks_enable(client)
    if error:  # the SASL mechanism has no tokens
        library.rd_kafka_error_destroy(error)
    if token is not None:
        # Otherwise a call may fail before the first token is there.
        set_token(library, client, token)
    return client, main_queue


def notify(library: ctypes.CDLL, queue: int, file: int) -> None:
    """Have librdkafka write a byte to a file when a queue is not empty any more.

    It writes the next one only after the queue was polled: poll until it is empty.
    """
    library.rd_kafka_queue_io_event_enable(queue, file, _WAKE_UP, len(_WAKE_UP))


def stop_notifying(library: ctypes.CDLL, queue: int) -> None:
    """Have librdkafka write no more: the file may be closed before the queue's client ends."""
    library.rd_kafka_queue_io_event_enable(queue, _NO_FILE, None, 0)


def handle_event(
    library: ctypes.CDLL,
    event: int,
    name: str,
    connection: Connection,
    read_line: Callable[[str], object] | None = None,
) -> int:
    """Log a line with the name of its handle, or keep an error; return the type of the event.

    ``read_line`` gets the text of a line as well.
    """
    event_type: int = library.rd_kafka_event_type(event)
    if event_type == EVENT_LOG:
        text = _log_line(library, event, name, connection.max_log_level)
        if read_line is not None:
            read_line(text)
    elif event_type == EVENT_ERROR:
        text = library.rd_kafka_event_error_string(event).decode(errors="replace")
        connection.remember_error(KafkaError(library.rd_kafka_event_error(event), text))
    return event_type


def _log_line(library: ctypes.CDLL, event: int, name: str, max_level: int) -> str:
    """Log a line that the user wants, and return the text of any."""
    facility, text, level = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_int()
    if library.rd_kafka_event_log(
        event, ctypes.byref(facility), ctypes.byref(text), ctypes.byref(level)
    ):
        return ""
    line = (text.value or b"").decode(errors="replace")
    if level.value <= max_level:
        log.log(
            LEVELS[min(level.value, LOG_DEBUG)],
            "%s [%s] %s",
            (facility.value or b"").decode(errors="replace"),
            name,
            line,
        )
    return line


def _new(
    library: ctypes.CDLL, kind: int, connection: Connection, config: Mapping[str, str], events: int
) -> int:
    reason = ctypes.create_string_buffer(ERROR_SIZE)
    conf = library.rd_kafka_conf_new()
    is_accepted = not any(
        library.rd_kafka_conf_set(conf, name.encode(), value.encode(), reason, ERROR_SIZE)
        for name, value in config.items()
    )
    library.rd_kafka_conf_set_events(conf, EVENT_LOG | EVENT_ERROR | events)
    library.rd_kafka_conf_enable_sasl_queue(conf, 1)
    if connection.tokens is not None:
        connection.token_refresh(library).register(conf)
    client: int | None = None
    if is_accepted:
        client = library.rd_kafka_new(kind, conf, reason, ERROR_SIZE)
    if client is None:
        library.rd_kafka_conf_destroy(conf)  # a client owns it only once it is created
        raise connection.options_error(reason.value.decode(errors="replace"))
    return client
