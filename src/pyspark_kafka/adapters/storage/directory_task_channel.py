"""A task's end of a channel in a directory of a storage."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final, final

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.continuous.messages import TaskCommand, read_command, write_message
from ...domain.errors import DriverLostError
from ...ports.continuous import DRIVER_TIMEOUT_S, TaskChannel
from ..inbox import Inbox
from .channel_names import DRIVER, beat_name, beat_number, command_name, digest_of, message_name
from .failures import problem_of
from .polling_thread import PollingThread
from .signed_files import SignedFiles
from .storages import opener_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.continuous.messages import TaskId, TaskMessage
    from ...ports.continuous import ChannelAddress

_CLOSE_TIMEOUT_S: Final = 1.0
_MAX_CHECK_INTERVAL_S: Final = 1.0


@final
class DirectoryTaskChannel(TaskChannel):
    """A thread writes messages, reads commands, and looks for the driver every second.

    A driver that cannot be heard is lost after ``driver_timeout_s``, and the time-out of a request
    to the storage if that does not answer.

    :raises DriverLostError: if the directory has no such channel, or the address has another key.
    """

    def __init__(
        self, address: ChannelAddress, task: TaskId, *, driver_timeout_s: float = DRIVER_TIMEOUT_S
    ) -> None:
        self._location = address.location
        self._digest = digest_of(task)
        self._driver_timeout_s = driver_timeout_s
        self._outbox: Inbox[TaskMessage] = Inbox()
        self._inbox: Inbox[TaskCommand] = Inbox()
        self._unwritten: list[bytes] = []
        self._files_written = 0
        self._commands_read = 0
        self._last_beat = 0
        self._next_check = 0.0
        self._lost: str | None = None
        self._is_closed = False
        self._files, path = _open(address)
        self._last_heard = time.monotonic()
        self._thread = PollingThread(path, self._poll, self._flush)
        self._thread.start()

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self._location}')"

    def send(self, message: TaskMessage) -> None:
        self._raise_if_lost()
        self._outbox.put(message)

    def receive(self) -> Sequence[TaskCommand]:
        commands = self._inbox.take()
        if not commands:
            self._raise_if_lost()
        return commands

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._thread.close(_CLOSE_TIMEOUT_S)
            self._lost = self._lost or "the task closed the channel"

    def _raise_if_lost(self) -> None:
        if self._lost is not None:
            raise DriverLostError(self._lost)

    def _poll(self) -> None:
        if self._lost is not None:
            return
        try:
            self._check_driver()
            self._flush()
            self._read_commands()
        finally:
            # After looking for it: a process that was stopped has not lost its driver.
            silent_s = time.monotonic() - self._last_heard
            if silent_s > self._driver_timeout_s and self._lost is None:
                self._lost = f"nothing was heard from it for {silent_s:.1f} seconds"

    def _check_driver(self) -> None:
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + min(_MAX_CHECK_INTERVAL_S, self._driver_timeout_s / 5)
        if self._files.read(DRIVER) is None:
            self._lost = "the driver closed the channel"
            return
        beats = [number for number in map(beat_number, self._files.names()) if number is not None]
        newest = max(beats, default=0)
        if newest > self._last_beat and self._files.read(beat_name(newest)) is not None:
            self._last_beat, self._last_heard = newest, time.monotonic()

    def _flush(self) -> None:
        """Write the messages that are due into one file, again if that has failed."""
        if self._lost is not None:
            return
        if not self._unwritten:
            self._unwritten = [write_message(each).encode() for each in self._outbox.take()]
        if self._unwritten:
            name = message_name(self._digest, self._files_written)
            self._files.write(name, b"\n".join(self._unwritten))
            self._files_written += 1
            self._unwritten = []

    def _read_commands(self) -> None:
        while True:
            name = command_name(self._digest, self._commands_read)
            payload = self._files.read(name)
            if payload is None:
                return
            self._commands_read += 1
            try:
                self._inbox.put(read_command(payload))
            except ValueError:
                self._lost = "it sent a malformed command"
                return
            self._files.remove([name])


def _open(address: ChannelAddress) -> tuple[SignedFiles, StoragePath]:
    options = json.loads(address.options)
    path = StoragePath(options["url"], options["storageOptions"])
    try:
        files = SignedFiles(opener_of(path)(), address.key)
        is_open = files.read(DRIVER) is not None
    except Exception as error:  # noqa: BLE001 - the storages' exceptions have no common base
        raise DriverLostError(f"{path}: {problem_of(error, path)}") from None
    if not is_open:
        raise DriverLostError(f"it has closed the channel in '{path}', or has another key")
    return files, path
