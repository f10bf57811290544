"""Both ends of a channel in a directory of a storage: files that a key authenticates.

A file is a MAC and a payload. The MAC is the HMAC-SHA256 of the file's name and the payload, so
that no file can be changed, or renamed to take the place of another. Names begin with an id of the
key: channels can share a directory.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import threading
import time
from collections import defaultdict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.continuous.messages import (
    TaskCommand,
    TaskMessage,
    read_command,
    read_message,
    write_command,
    write_message,
)
from ...domain.errors import DriverLostError
from ...ports.continuous import DRIVER_TIMEOUT_S, ChannelAddress, EpochChannel, TaskChannel
from ..checkpoints.directory import OversizedFileError, failures_of, problem_of
from ..checkpoints.storages import opener_of
from .frames import new_key
from .threads import Inbox

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from ...domain.continuous.messages import TaskId
    from ..checkpoints.directory import LogDirectory

DRIVER: Final = "driver"
"""The name of a file that exists until the driver closes the channel."""

_BEAT: Final = "beat"
_NUMBERED: Final = re.compile(r"(beat|[0-9a-f]{32}\.message)\.(0|[1-9][0-9]{0,17})")

log = logging.getLogger("pyspark_kafka")


def digest_of(task: TaskId) -> str:
    """Return a digest that names a task in files: an attempt may be any text."""
    text = f"{task.generation} {task.slot} {task.attempt}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def message_name(digest: str, number: int) -> str:
    """Return the name of a task's file of messages."""
    return f"{digest}.message.{number}"


def _command_name(digest: str, number: int) -> str:
    return f"{digest}.command.{number}"


def numbers_of(names: Iterable[str]) -> dict[str, set[int]]:
    """Return the numbers of heartbeats, and of files of messages by the digests of their tasks."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for found in filter(None, map(_NUMBERED.fullmatch, names)):
        numbers[found[1].removesuffix(".message")].add(int(found[2]))
    return numbers


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
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Let the thread finish, and wait for it. A second call does nothing."""
        if not self._closing.is_set():
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


DIRECTORY: Final = "directory"
"""The ``kind`` of this channel's address; the directory and its options are in ``options``."""

HEARTBEAT_INTERVAL_S: Final = DRIVER_TIMEOUT_S / 5
_CLOSE_TIMEOUT_S: Final = 10.0


@final
class DirectoryEpochChannel(EpochChannel):
    """Messages are files, for drivers that executors cannot reach.

    The driver lists the directory, and removes the files that it has read. Messages are read one
    after another: with many tasks on an object storage, that takes a second or more. Files of a
    channel are removed when it is closed; a later channel removes a killed one's files, after a
    day.

    :raises UnsupportedFeatureError: if the storage cannot create a file exclusively.
    :raises MetadataLogError: if the directory cannot be written.
    """

    def __init__(
        self, path: StoragePath, *, heartbeat_interval_s: float = HEARTBEAT_INTERVAL_S
    ) -> None:
        key = new_key()
        # The URL may contain credentials; an address never shows its options.
        options = {"url": path.url, "storageOptions": path.storage_options}
        self._address = ChannelAddress(DIRECTORY, str(path), key, json.dumps(options))
        self._heartbeat_interval_s = heartbeat_interval_s
        self._inbox: Inbox[TaskMessage] = Inbox()
        self._next_message: dict[str, int] = {}
        self._next_command: defaultdict[str, int] = defaultdict(int)
        self._commands: deque[tuple[str, bytes]] = deque()
        with failures_of(path):
            self._files = SignedFiles(opener_of(path)(), key)
            self._files.remove_abandoned()
            self._files.write(DRIVER, b"")
        self._beats = 0
        self._next_beat = time.monotonic() + heartbeat_interval_s
        self._thread = PollingThread(path, self._poll, self._finish)

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self._address.location}')"

    @property
    def address(self) -> ChannelAddress:
        return self._address

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return self._inbox.take(timeout_s)

    def send(self, task: TaskId, command: TaskCommand) -> None:
        digest = digest_of(task)
        if digest in self._next_message:
            self._commands.append((digest, write_command(command).encode()))

    def close(self) -> None:
        self._thread.close(_CLOSE_TIMEOUT_S)

    def _poll(self) -> None:
        self._beat()
        self._send_commands()
        for digest, numbers in numbers_of(self._files.names()).items():
            if digest != _BEAT:
                self._receive_from(digest, numbers)
                self._beat()

    def _beat(self) -> None:
        now = time.monotonic()
        if now < self._next_beat:
            return
        self._files.write(f"{_BEAT}.{self._beats + 1}", b"")
        self._beats += 1
        self._next_beat = now + self._heartbeat_interval_s
        self._files.remove([f"{_BEAT}.{self._beats - 1}"])

    def _send_commands(self) -> None:
        while self._commands:
            digest, command = self._commands[0]
            self._files.write(_command_name(digest, self._next_command[digest]), command)
            self._next_command[digest] += 1
            self._commands.popleft()

    def _receive_from(self, digest: str, numbers: Collection[int]) -> None:
        first = self._next_message.get(digest, 0)
        number, last = first, max(numbers)
        # A storage may list a file before an earlier one, which is awaited then.
        while number <= last:
            payload = self._files.read(message_name(digest, number))
            if payload is None:
                break
            number += 1
            self._next_message[digest] = number
            self._deliver(digest, payload)
        # Files before the first are left from a failed removal.
        done = {*range(first, number), *(each for each in numbers if each < first)}
        self._files.remove([message_name(digest, each) for each in sorted(done)])

    def _deliver(self, digest: str, payload: bytes) -> None:
        for line in payload.split(b"\n"):
            try:
                message = read_message(line)
            except ValueError:
                log.warning("Dropped a malformed message of a task")
                continue
            if digest_of(message.task) == digest:
                self._inbox.put(message)
            else:
                log.warning("Dropped a message of another task")

    def _finish(self) -> None:
        # Tasks look for this file.
        self._files.remove([DRIVER])
        with suppress(FileNotFoundError):
            self._files.remove(list(self._files.names()))


_TASK_CLOSE_TIMEOUT_S: Final = 1.0
_MAX_CHECK_INTERVAL_S: Final = 1.0


@final
class DirectoryTaskChannel(TaskChannel):
    """A thread writes messages, reads commands, and looks for the driver every second.

    A driver that cannot be heard is lost after ``driver_timeout_s``, or after that and a request's
    time-out if the storage does not answer.

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
        self._files, path = _open(address)
        self._last_heard = time.monotonic()
        self._thread = PollingThread(path, self._poll, self._flush)

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
        self._thread.close(_TASK_CLOSE_TIMEOUT_S)
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
            # The time is taken after looking for the driver: a process that was stopped has not
            # lost it.
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
        newest = max(numbers_of(self._files.names()).get(_BEAT, ()), default=0)
        if newest > self._last_beat and self._files.read(f"{_BEAT}.{newest}") is not None:
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
            name = _command_name(self._digest, self._commands_read)
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
