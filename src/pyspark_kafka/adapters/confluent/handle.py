"""librdkafka's handles: their queues of events, topics, metadata and tokens."""

from __future__ import annotations

import ctypes
import logging
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from confluent_kafka import KafkaError, KafkaException

from ...domain.errors import PysparkKafkaError
from ..process_local import ProcessLocal
from .client_closing import close_in_time, end_in_time
from .cluster_settings import LOG_DEBUG
from .librdkafka import CONSUMER, EVENT_DR, EVENT_ERROR, EVENT_LOG, PRODUCER, Metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...ports.security.token_provider import Token, TokenProvider
    from .cluster_errors import ClusterErrors
    from .cluster_settings import ClusterSettings

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

PURGE_ALL: Final = 0x1 | 0x2
"""``RD_KAFKA_PURGE_F_QUEUE`` and ``RD_KAFKA_PURGE_F_INFLIGHT``."""

_REFRESH: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
"""``void (*)(rd_kafka_t *, const char *oauthbearer_config, void *opaque)``."""

_OWNERS: Final = {CONSUMER: "reader", PRODUCER: "producer"}

LEVELS: Final = (
    *(logging.CRITICAL,) * 3,
    logging.ERROR,
    *(logging.WARNING,) * 2,
    logging.INFO,
    logging.DEBUG,
)
"""The levels of ``logging`` by syslog's."""


class Fetch(Protocol):
    """A fetch that has to end before its handle."""

    def release(self) -> None:
        """Destroy the messages that were taken, without waiting."""

    def end(self) -> None:
        """End the fetch, and wait for librdkafka."""


@final
@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A broker's metadata of a topic."""

    error: int
    partitions: int = 0
    led: Mapping[int, int] = field(default_factory=dict)
    """The leaders of the partitions that have one."""


@final
@dataclass(slots=True)
class _Parts:
    """librdkafka's objects that have to be destroyed."""

    library: ctypes.CDLL
    kind: int
    client: int
    main_queue: int
    refresh: TokenRefresh | None
    """librdkafka's threads may call it until the client is destroyed."""

    topics: dict[str, int] = field(default_factory=dict)
    fetches: list[Any] = field(default_factory=list)

    def release(self) -> None:
        stop_notifying(self.library, self.main_queue)
        for fetch in self.fetches:
            fetch.release()

    def destroy(self) -> None:
        library = self.library
        if self.kind == PRODUCER:
            # librdkafka would wait for queued records.
            library.rd_kafka_purge(self.client, PURGE_ALL)
        # The client last: librdkafka waits until nothing refers to it.
        for fetch in self.fetches:
            fetch.end()
        for topic in self.topics.values():
            library.rd_kafka_topic_destroy(topic)
        library.rd_kafka_queue_destroy(self.main_queue)
        library.rd_kafka_destroy(self.client)


@final
class Handle:
    """A client of librdkafka's, for the process that creates it."""

    def __init__(
        self,
        library: ctypes.CDLL,
        kind: int,
        settings: ClusterSettings,
        errors: ClusterErrors,
        config: Mapping[str, str],
        events: int = 0,
    ) -> None:
        """Create the client, whose main queue gets log lines, errors and ``events``.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        :raises AuthenticationError: if the login needs a token, which its issuer refuses.
        :raises TokenUnavailableError: if the issuer cannot be asked.
        """
        self.library = library
        self._kind = kind
        self._errors = errors
        self._max_log_level = settings.max_log_level
        tokens = settings.tokens
        token = None if tokens is None else tokens.token()
        refresh = None if tokens is None else TokenRefresh(library, tokens)
        client = _new(library, kind, settings, {**config, **_QUEUE}, events, refresh)
        main_queue: int = library.rd_kafka_queue_get_main(client)
        library.rd_kafka_set_log_queue(client, None)
        # A thread of librdkafka's renews tokens: this one may not poll for a long time.
        error = library.rd_kafka_sasl_background_callbacks_enable(client)
        if error:  # the SASL mechanism has no tokens
            library.rd_kafka_error_destroy(error)
        if token is not None:
            # Otherwise a call may fail before the first token is there.
            set_token(library, client, token)
        self._name = library.rd_kafka_name(client).decode()
        self._local = ProcessLocal(_Parts(library, kind, client, main_queue, refresh))
        weakref.finalize(self, _destroy, self._local).atexit = False

    @property
    def client(self) -> int:
        """The address of librdkafka's object.

        :raises RuntimeError: if the handle is closed, or another process created it.
        """
        return self._parts.client

    @property
    def is_open(self) -> bool:
        """Whether the handle is not closed, and belongs to this process."""
        return self._local.get() is not None

    @property
    def topics(self) -> Iterable[str]:
        """The topics that are used."""
        return self._parts.topics.keys()

    @property
    def fetches(self) -> list[Any]:
        """The fetches that run, each a ``Fetch``; they end with the handle."""
        return self._parts.fetches

    def end(self, fetch: Fetch) -> None:
        """End one of ``fetches``. If librdkafka does not end it in time, the client is closed."""
        self.fetches.remove(fetch)
        fetch.release()
        end_in_time(fetch.end, self._abandon)

    def notify(self, file: int) -> None:
        """Write a byte to a file when there are events."""
        notify(self.library, self._parts.main_queue, file)

    def topic(self, name: str) -> int:
        """Return librdkafka's object of a topic, which is used from now on.

        :raises KafkaException: if no topic may have the name.
        """
        topics = self._parts.topics
        if name not in topics:
            topic = self.library.rd_kafka_topic_new(self.client, name.encode(), None)
            if not topic:
                raise KafkaException(KafkaError(self.library.rd_kafka_last_error()))
            topics[name] = topic
        return topics[name]

    def leave_topic(self, name: str) -> None:
        """Forget a topic that is no longer used."""
        topic = self._parts.topics.pop(name, None)
        if topic is not None:
            self.library.rd_kafka_topic_destroy(topic)

    def poll(
        self,
        wait_ms: int,
        read_line: Callable[[str], object] | None = None,
        take_reports: Callable[[int], object] | None = None,
    ) -> int:
        """Log a line or keep an error, if an event comes in time; return its type, 0 for none.

        ``read_line`` gets the text of a line as well, and ``take_reports`` an event with delivery
        reports.
        """
        library = self.library
        event = library.rd_kafka_queue_poll(self._parts.main_queue, wait_ms)
        if not event:
            return 0
        kind: int = library.rd_kafka_event_type(event)
        if kind == EVENT_LOG:
            text = self._log_line(event)
            if read_line is not None:
                read_line(text)
        elif kind == EVENT_ERROR:
            text = library.rd_kafka_event_error_string(event).decode(errors="replace")
            self._errors.remember_error(KafkaError(library.rd_kafka_event_error(event), text))
        elif kind == EVENT_DR and take_reports is not None:
            take_reports(event)
        library.rd_kafka_event_destroy(event)
        return kind

    def topic_metadata(self, name: str, timeout_s: float) -> TopicMetadata:
        """Return a broker's metadata of a topic, which is used from now on.

        :raises KafkaException: if none answers in time.
        """
        with self._metadata(self.topic(name), timeout_s) as response:
            found = response.topics[0]
            if found.err:
                return TopicMetadata(found.err)
            partitions = found.partitions[: found.partition_cnt]
            led = {each.id: each.leader for each in partitions if each.leader >= 0}
            return TopicMetadata(0, len(partitions), led)

    def reaches_broker(self, timeout_s: float) -> bool:
        """Return whether a broker answers in time."""
        try:
            with self._metadata(None, timeout_s):
                return True
        except KafkaException:
            return False

    def close(self) -> None:
        """Destroy the client; a second call does nothing."""
        _destroy(self._local)

    def _abandon(self) -> Callable[[], object]:
        """Close the client, except for the part that waits for librdkafka; return that."""
        parts = self._parts
        self._local.pop()
        parts.release()
        return parts.destroy

    @property
    def _parts(self) -> _Parts:
        parts = self._local.get()
        if parts is None:
            owner = _OWNERS[self._kind]
            raise RuntimeError(f"the {owner} is closed, or belongs to another process")
        return parts

    @contextmanager
    def _metadata(self, topic: int | None, timeout_s: float) -> Iterator[Any]:
        library = self.library
        response = ctypes.POINTER(Metadata)()
        milliseconds = round(timeout_s * 1_000)
        place = ctypes.byref(response)
        error = library.rd_kafka_metadata(self.client, 0, topic, place, milliseconds)
        if error:
            raise KafkaException(KafkaError(error))
        try:
            yield response.contents
        finally:
            library.rd_kafka_metadata_destroy(response)

    def _log_line(self, event: int) -> str:
        """Log a line that the user wants, and return the text of any."""
        facility, text, level = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_int()
        out = [ctypes.byref(each) for each in (facility, text, level)]
        if self.library.rd_kafka_event_log(event, *out):
            return ""
        line = (text.value or b"").decode(errors="replace")
        if level.value <= self._max_log_level:
            log.log(
                LEVELS[min(level.value, LOG_DEBUG)],
                "%s [%s] %s",
                (facility.value or b"").decode(errors="replace"),
                self._name,
                line,
            )
        return line


def _destroy(local: ProcessLocal[_Parts]) -> None:
    parts = local.pop()
    if parts is not None:
        parts.release()
        close_in_time(parts.destroy, is_collected=True)


def _new(
    library: ctypes.CDLL,
    kind: int,
    settings: ClusterSettings,
    config: Mapping[str, str],
    events: int,
    refresh: TokenRefresh | None,
) -> int:
    reason = ctypes.create_string_buffer(ERROR_SIZE)
    conf = library.rd_kafka_conf_new()
    is_accepted = not any(
        library.rd_kafka_conf_set(conf, name.encode(), value.encode(), reason, ERROR_SIZE)
        for name, value in config.items()
    )
    library.rd_kafka_conf_set_events(conf, EVENT_LOG | EVENT_ERROR | events)
    library.rd_kafka_conf_enable_sasl_queue(conf, 1)
    if refresh is not None:
        refresh.register(conf)
    client: int | None = None
    if is_accepted:
        client = library.rd_kafka_new(kind, conf, reason, ERROR_SIZE)
    if client is None:
        library.rd_kafka_conf_destroy(conf)  # a client owns it only once it is created
        raise settings.options_error(reason.value.decode(errors="replace"))
    return client


def notify(library: ctypes.CDLL, queue: int, file: int) -> None:
    """Have librdkafka write a byte to a file when a queue is no longer empty.

    It writes the next one only after the queue was polled: poll until it is empty.
    """
    library.rd_kafka_queue_io_event_enable(queue, file, _WAKE_UP, len(_WAKE_UP))


def stop_notifying(library: ctypes.CDLL, queue: int) -> None:
    """Have librdkafka write no more: the file may be closed before the queue's client ends."""
    library.rd_kafka_queue_io_event_enable(queue, _NO_FILE, None, 0)


@final
class TokenRefresh:
    """librdkafka's callback for a new token, which comes when 80 % of the last one's life are over.

    A reference to it has to exist for as long as a handle lives.
    """

    def __init__(self, library: ctypes.CDLL, provider: TokenProvider) -> None:
        self._library = library
        self._provider = provider
        self._callback = _REFRESH(self._refresh)

    def register(self, conf: int) -> None:
        """Have librdkafka call it for the handle that is made of these settings."""
        self._library.rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, self._callback)

    def _refresh(self, client: int, _config: bytes, _opaque: int) -> None:
        try:
            error = set_token(self._library, client, self._provider.token())
        except PysparkKafkaError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001  # ctypes drops it, and no token would come
            error = type(failure).__name__
        if error:
            # librdkafka asks again after ten seconds, and reports the text as an error.
            self._library.rd_kafka_oauthbearer_set_token_failure(client, error.encode())


def set_token(library: ctypes.CDLL, client: int, token: Token) -> str:
    """Set the token of a handle; return why librdkafka does not accept it, empty if it does."""
    pairs = [text.encode() for pair in token.extensions for text in pair]
    extensions = (ctypes.c_char_p * len(pairs))(*pairs)
    reason = ctypes.create_string_buffer(ERROR_SIZE)
    failed = library.rd_kafka_oauthbearer_set_token(
        client,
        token.value.encode(),
        token.expires_ms,
        principal_of(token).encode(),
        extensions,
        len(pairs),
        reason,
        ERROR_SIZE,
    )
    return reason.value.decode(errors="replace") if failed else ""


def principal_of(token: Token) -> str:
    """Return librdkafka's name for the user, which must not be empty."""
    return token.principal or "unknown"
