"""A thread that looks into a storage again and again."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, final

from .failures import problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.checkpoints.storage_path import StoragePath

log = logging.getLogger("pyspark_kafka")

POLL_INTERVAL_S: Final = 0.1


@final
class PollingThread:
    """Calls ``poll`` every ``POLL_INTERVAL_S`` until it is closed, and ``finish`` at the end.

    Errors of the storage are logged, the first of several in a row, and ``poll`` is called again.
    """

    def __init__(
        self, path: StoragePath, poll: Callable[[], None], finish: Callable[[], None]
    ) -> None:
        self._path = path
        self._poll = poll
        self._finish = finish
        self._has_failed = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="epoch-channel", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Let the thread finish, and wait for it."""
        self._closing.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closing.wait(POLL_INTERVAL_S):
            self._attempt(self._poll)
        self._attempt(self._finish)

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the storages' exceptions have no common base
            if not self._has_failed:
                log.warning(
                    "The channel of a continuous query in '%s': %s",
                    self._path,
                    problem_of(error, self._path),
                )
            self._has_failed = True
        else:
            self._has_failed = False
