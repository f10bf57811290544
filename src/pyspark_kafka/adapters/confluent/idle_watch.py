"""A thread that handles the events of idle clients.

An idle client keeps a connection. If the broker ends it, and the password was changed, librdkafka
logs in with the old one several times a second until its events are polled.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, final

from ..process_local import ProcessLocal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .cluster_settings import ClusterSettings

log = logging.getLogger(__name__)

_EVERY_S: Final = 0.2
"""A broker answers a wrong password after 0.1 s or later (``connection.failed.authentication
.delay.ms``): there is time for one more login."""


class Watched(Protocol):
    """An adapter that keeps a client."""

    def handle_idle_events(self) -> bool:
        """Handle the events of the client, and close it if its login is refused.

        Return whether there is a client. The error is for its next user: none is raised.
        """


@final
@dataclass(slots=True)
class _Process:
    """The state of one process: a fork has another lock, and no thread."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    users: int = 0
    thread: threading.Thread | None = None


@final
class IdleWatch:
    """Calls ``handle_idle_events`` of one adapter while it has an idle client."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._has_login = settings.has_login
        self._process: ProcessLocal[_Process] = ProcessLocal()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Handle no events in this block: its thread does. Blocks may be nested."""
        process = self._here()
        with process.lock:
            process.users += 1
        try:
            yield
        finally:
            with process.lock:
                process.users -= 1

    def start(self, adapter: Watched) -> None:
        """Start the thread, unless it runs in this process or there is no login."""
        process = self._here()
        if not self._has_login or (process.thread is not None and process.thread.is_alive()):
            return
        process.thread = threading.Thread(
            target=_watch,
            args=(weakref.ref(adapter), process),
            name="pyspark-kafka-idle-watch",
            daemon=True,
        )
        process.thread.start()

    def _here(self) -> _Process:
        return self._process.get() or self._process.set(_Process())


def _watch(reference: weakref.ref[Watched], process: _Process) -> None:
    is_logged = False
    while True:
        try:
            if not _check(reference, process):
                return
        except Exception:
            if not is_logged:
                log.exception("The events of an idle client cannot be handled")
            is_logged = True
        time.sleep(_EVERY_S)


def _check(reference: weakref.ref[Watched], process: _Process) -> bool:
    adapter = reference()
    if adapter is None:
        return False
    with process.lock:
        return process.users > 0 or adapter.handle_idle_events()
