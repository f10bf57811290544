"""Show the native stack of each process that a signal ended, and which tests ran then.

Spark runs the task of a dead Python process again, so all tests may pass: the run then fails.
Core files are those of Linux, where its ``core_pattern`` names a file and not a program.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pytest

from tests.slowness import bound_s

if TYPE_CHECKING:
    from collections.abc import Iterable

CORE_PATTERN: Final = Path("/proc/sys/kernel/core_pattern")
FIRST_BYTES: Final = b"\x7fELF"
NOTES: Final = 4
"""The type of the segment whose first note has the state of the thread that a signal ended."""
ASSERTION: Final = re.compile(rb"(?:Assertion `|assert: )[ -~]{1,300}")
"""The message of a failed one, from glibc or librdkafka, which pytest captures and loses."""

WHERE: Final = re.compile(rb"[ -~]{1,200}\Z")
"""The text before it: the file, the line and the function."""

THREAD_ID: Final = 32
"""Where that thread's number is in its state (``elf_prstatus`` of 64-bit Linux)."""
MAX_SECONDS: Final = bound_s(120)
"""How long pystack may take for a core file."""


def pytest_configure(config: pytest.Config) -> None:
    """Let this process, and those that it starts, leave core files; and look for them."""
    if sys.platform != "linux":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    pattern = CORE_PATTERN.read_text().strip()
    if not hasattr(config, "workerinput") and not pattern.startswith("|"):
        config.pluginmanager.register(NativeCrashes(config, pattern))


@dataclass(frozen=True, slots=True)
class Crash:
    """The core file of a process, and the tests that ran when it was found."""

    core: Path
    tests: tuple[str, ...]

    def stacks(self) -> str:
        """Return the signal, the command, and all threads' native stacks, the dead one's first."""
        command = (sys.executable, "-m", "pystack", "--no-color", "core", "--native-all", self.core)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=MAX_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            return str(error)
        facts, *threads = re.split(r"(?=^Traceback for thread )", done.stdout, flags=re.MULTILINE)
        with self.core.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as core:
            first = f"Traceback for thread {dead_thread(core)} "
            reasons = assertions(core)
        threads.sort(key=lambda stack: not stack.startswith(first))
        return "".join([facts, *sorted(reasons), *threads, done.stderr])


@final
class NativeCrashes:
    """Collects the core files of a run. What varies in their name follows a percent sign."""

    def __init__(self, config: pytest.Config, pattern: str) -> None:
        self._pattern = Path.cwd() / f"{pattern.partition('%')[0]}*"
        self._folder = config.rootpath / "build" / "cores"
        self._config = config
        self._running: dict[str, None] = {}
        self._crashes: list[Crash] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test runs."""
        self._running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Look for the core files of the tests that ran."""
        self._take(self._pattern.parent.glob(self._pattern.name))
        self._running.pop(nodeid, None)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the run fail if there was a crash, also in a directory of a test."""
        directories = self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self._take(self._pattern.parent.glob(self._pattern.name))
        self._take(directories.rglob(self._pattern.name))
        if self._crashes and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what each process did when it died."""
        for crash in self._crashes:
            terminalreporter.section(f"a process died: {crash.core}")
            terminalreporter.write_line(f"Tests that ran then: {', '.join(crash.tests)}")
            terminalreporter.write_line(crash.stacks())

    def _take(self, found: Iterable[Path]) -> None:
        for path in found:
            if not is_core(path):
                continue
            self._folder.mkdir(parents=True, exist_ok=True)
            core = self._folder / f"{path.stat().st_mtime_ns}.core"
            path.rename(core)
            self._crashes.append(Crash(core, tuple(self._running)))


def is_core(path: Path) -> bool:
    """Return whether a file begins as core files do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(FIRST_BYTES)) == FIRST_BYTES


def assertions(core: mmap) -> set[str]:
    """Return the lines of assertions that failed, as far as they are in memory."""
    lines = set()
    for found in ASSERTION.finditer(core):
        where = WHERE.search(core[max(0, found.start() - 200) : found.start()])
        if where is not None and b".c:" in where[0]:
            lines.add((where[0] + found[0]).decode() + "\n")
    return lines


def dead_thread(core: mmap) -> int:
    """Return the number of the thread that a signal ended: pystack lists the newest first."""
    [start] = struct.unpack_from("<Q", core, 32)
    size, count = struct.unpack_from("<HH", core, 54)
    for segment in range(start, start + size * count, size):
        kind, _, place = struct.unpack_from("<IIQ", core, segment)
        if kind == NOTES:
            [name_size] = struct.unpack_from("<I", core, place)
            state = place + 12 + -(-name_size // 4) * 4
            return int(struct.unpack_from("<i", core, state + THREAD_ID)[0])
    return 0
