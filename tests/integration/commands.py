import os
import pty
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyspark_kafka
from tests.slowness import bound_s

HOME = Path(str(pyspark_kafka.__file__)).parents[1]
SECONDS = bound_s(60)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pyspark_kafka", *arguments]


def environment(**more: str) -> dict[str, str]:
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(HOME), inherited] if inherited else [str(HOME)])
    return {**os.environ, "PYTHONPATH": path, **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        env=environment(**more),
    )


class Running:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: deque[str] = deque()
        self.errors: deque[str] = deque()
        self._threads = [
            threading.Thread(target=self._read, args=pair)
            for pair in ((process.stdout, self.lines), (process.stderr, self.errors))
        ]
        for thread in self._threads:
            thread.start()

    def await_line(self, wanted: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if self.lines:
                line = self.lines.popleft()
                if wanted(line):
                    return line
            else:
                assert self.process.poll() is None, "".join(self.errors)
                time.sleep(0.02)
        raise AssertionError("no such line came")

    def end(self, signal: int) -> int:
        self.process.send_signal(signal)
        status = self.process.wait(SECONDS)
        for thread in self._threads:
            thread.join(SECONDS)
        return status

    @staticmethod
    def _read(stream: IO[str], lines: deque[str]) -> None:
        with stream:
            for line in stream:
                lines.append(line)


@contextmanager
def running(*arguments: str, **more: str) -> Iterator[Running]:
    with running_command(command(*arguments), environment(**more)) as started:
        yield started


@contextmanager
def running_command(
    line: Sequence[str | Path], variables: Mapping[str, str], directory: Path | None = None
) -> Iterator[Running]:
    process = subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env=variables,
    )
    started = Running(process)
    try:
        yield started
    finally:
        if process.poll() is None:
            process.kill()
            started.end(0)


class Terminal:
    """A terminal of 30 lines in which a command runs, and what it has shown since a look."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self.screen = b""
        self._descriptor = descriptor

    def read_until(self, is_shown: Callable[[bytes], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not is_shown(self.screen):
            assert time.monotonic() < deadline, self.screen.decode()
            self.screen += os.read(self._descriptor, 65_536)

    def read_rest(self) -> int:
        """Read until the command ends, and return its status."""
        with suppress(OSError):  # the other end is closed
            while chunk := os.read(self._descriptor, 65_536):
                self.screen += chunk
        return self.process.wait(SECONDS)

    def type(self, text: bytes) -> None:
        os.write(self._descriptor, text)


@contextmanager
def in_terminal(*arguments: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=environment(TERM="xterm", COLUMNS="100", LINES="30"),
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
