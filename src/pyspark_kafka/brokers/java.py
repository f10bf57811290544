"""The Java on this machine, and processes of it that do not outlive this one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import JavaError

_ANSWER_SECONDS = 30.0

# The shell starts a watcher in the background and then becomes Java itself, with the same pid. The
# watcher reads from a pipe whose other end is this Python process. A line releases the watcher; the
# end of the pipe means that Python is gone, even by SIGKILL. Linux's PR_SET_PDEATHSIG would need no
# watcher, but it is bound to the thread that forked instead of the process (prctl(2)), and needs a
# preexec_fn, which may deadlock if there are other threads. The pipe has to be descriptor 3: shells
# give /dev/null as standard input to background commands.
_UNTIL_PYTHON_ENDS = """
exec 3<&0
{ read -r line <&3 || kill -9 $$; } &
exec "$@" </dev/null 3<&-
"""


def require_java(minimum: int = 17) -> Path:
    """Return the path of ``java``: from ``JAVA_HOME``, or else from the ``PATH``.

    :raises JavaError: if there is none, or its major version is below ``minimum``.
    """
    java = find_java(minimum)
    answer = version_answer(java)
    major = major_version(answer)
    if major is None:
        raise JavaError(f"{java} does not print its version", minimum)
    if major < minimum:
        raise JavaError(f"{java} is Java {major}", minimum)
    return java


def find_java(minimum: int) -> Path:
    """Return the path of ``java`` of any version.

    :raises JavaError: if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        # If the variable is set, Spark's own scripts run no other Java either.
        found = shutil.which("java", path=str(Path(home) / "bin"))
        missing = f"JAVA_HOME is {home}, which has no bin/java"
    else:
        found = shutil.which("java")
        missing = "there is no java on the PATH"
    if found is None:
        raise JavaError(missing, minimum)
    return Path(found).absolute()


def major_version(answer: str) -> int | None:
    """Return the major version in the output of ``java -version``, or ``None``."""
    # Up to Java 8 the major version is the second number: "1.8.0_292".
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(match[1]) if match else None


def version_answer(java: Path) -> str:
    """Return a Java's output about its version, or an empty text if it has none."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout


class JavaProcess:
    """A Java process whose output goes to a file; the constructor starts it."""

    def __init__(self, command: Sequence[str], directory: Path, log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - Java with arguments of our own
                ["/bin/sh", "-c", _UNTIL_PYTHON_ENDS, "sh", *command],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=directory,
                # Ctrl-C is for Python, which then stops Java.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, of Java itself."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether Java has not ended yet."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, negative for a signal, or ``None`` after ``seconds``."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._release_watcher()
        return code

    def terminate(self) -> None:
        """Send SIGTERM without waiting."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone."""
        self._process.kill()
        self._process.wait()
        self._release_watcher()

    def _release_watcher(self) -> None:
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(BrokenPipeError), pipe:
                pipe.write(b"\n")
