"""The files of a channel in a directory, each authenticated by the channel's key."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import threading
import time
from typing import TYPE_CHECKING, Final, final

from ..checkpoints.directory import OversizedFileError
from ..checkpoints.failures import problem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ...domain.checkpoints.storage_path import StoragePath
    from ...domain.continuous.messages import TaskId
    from ..checkpoints.directory import LogDirectory

DRIVER: Final = "driver"
"""Exists as long as the driver has not closed the channel."""

_NUMBERED: Final = re.compile(r"(beat|[0-9a-f]{32}\.message)\.(0|[1-9][0-9]{0,17})")
_MESSAGE: Final = ".message"


def digest_of(task: TaskId) -> str:
    """Return what stands for a task in names: an attempt may be any text."""
    text = f"{task.generation} {task.slot} {task.attempt}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def message_name(digest: str, number: int) -> str:
    """Return the name of a task's file of messages."""
    return f"{digest}{_MESSAGE}.{number}"


def command_name(digest: str, number: int) -> str:
    """Return the name of a command to a task."""
    return f"{digest}.command.{number}"


def beat_name(number: int) -> str:
    """Return the name of a heartbeat of the driver."""
    return f"beat.{number}"


def beat_number(name: str) -> int | None:
    """Return the number of a heartbeat, or ``None`` for any other file."""
    found = _NUMBERED.fullmatch(name)
    return int(found[2]) if found and found[1] == "beat" else None


def message_number(name: str) -> tuple[str, int] | None:
    """Return the digest and the number of a file of messages, or ``None`` for any other file."""
    found = _NUMBERED.fullmatch(name)
    if found is None or not found[1].endswith(_MESSAGE):
        return None
    return found[1].removesuffix(_MESSAGE), int(found[2])


log = logging.getLogger("pyspark_kafka")

_MAC_BYTES: Final = hashlib.sha256().digest_size
_ID_BYTES: Final = 16
_SUFFIX: Final = ".channel"
_OWN: Final = re.compile(rf"[0-9a-f]{{{2 * _ID_BYTES}}}\.[0-9a-z.]+{re.escape(_SUFFIX)}")
_ABANDONED_S: Final = 24 * 60 * 60.0


@final
class SignedFiles:
    """Reads and writes the files of one channel. Methods raise the errors of the storage."""

    def __init__(self, directory: LogDirectory, key: bytes) -> None:
        self._directory = directory
        self._key = key
        self._prefix = f"{hmac.digest(key, b'id of the channel', 'sha256')[:_ID_BYTES].hex()}."

    def write(self, name: str, payload: bytes) -> None:
        """Create a file; the same one may be there already, from an attempt that seemed to fail.

        :raises FileExistsError: if a file with that name keeps coming back.
        """
        full_name = self._full(name)
        content = self._mac(full_name, payload) + payload
        # Reading removes a file that is not authentic.
        if self._directory.create(full_name, content) or self.read(name) == payload:
            return
        if not self._directory.create(full_name, content):
            raise FileExistsError(f"another file is named '{full_name}'")

    def read(self, name: str) -> bytes | None:
        """Return a file's payload, or ``None`` if there is none; remove one that is not authentic.

        A file that is not authentic is logged without its content.
        """
        full_name = self._full(name)
        try:
            content = self._directory.read(full_name)
        except OversizedFileError:
            content = b""
        if content is None:
            return None
        mac, payload = content[:_MAC_BYTES], content[_MAC_BYTES:]
        if hmac.compare_digest(mac, self._mac(full_name, payload)):
            return payload
        log.warning("Removed a file that is not from this channel: '%s'", full_name)
        self._directory.remove([full_name])
        return None

    def names(self) -> Iterator[str]:
        """Yield the names that the storage lists now."""
        for file in self._directory.files():
            if file.name.startswith(self._prefix) and file.name.endswith(_SUFFIX):
                yield file.name.removeprefix(self._prefix).removesuffix(_SUFFIX)

    def remove(self, names: Collection[str]) -> None:
        """Delete files; ignore those that do not exist."""
        if names:
            self._directory.remove([self._full(name) for name in names])

    def remove_abandoned(self) -> None:
        """Delete the files of all channels that were killed a day ago, or longer."""
        abandoned = self._abandoned()
        if abandoned:
            # A heartbeat that is replaced during a listing may be missing in it.
            self._directory.remove(sorted(abandoned & self._abandoned()))

    def _abandoned(self) -> set[str]:
        """Return the files of channels without a newer one: a driver that runs writes them."""
        before = time.time() - _ABANDONED_S
        found = [file for file in self._directory.files() if _OWN.fullmatch(file.name)]
        alive = {
            _channel(file.name)
            for file in found
            if file.modified is None or file.modified >= before
        }
        return {file.name for file in found if _channel(file.name) not in alive}

    def _full(self, name: str) -> str:
        return f"{self._prefix}{name}{_SUFFIX}"

    def _mac(self, full_name: str, payload: bytes) -> bytes:
        return hmac.digest(self._key, full_name.encode() + b"\0" + payload, "sha256")


def _channel(full_name: str) -> str:
    return full_name.partition(".")[0]


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
