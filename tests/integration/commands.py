import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark_kafka

HOME = Path(str(pyspark_kafka.__file__)).parents[1]
SECONDS = 60.0


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
        timeout=SECONDS,
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
