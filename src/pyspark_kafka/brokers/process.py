"""A Java process that does not outlive the Python process that started it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

# The shell leaves a watcher behind and becomes Java itself, with the same pid. The watcher reads
# from a pipe whose other end is this Python process: a line means that Java is no longer its
# matter, the end of the pipe that Python is gone, be it by SIGKILL. Linux's PR_SET_PDEATHSIG
# would do it without a watcher, but it follows the thread that forked instead of the process
# (prctl(2)), and needs a preexec_fn, which may deadlock beside other threads. The pipe has to be
# descriptor 3: a shell gives /dev/null as standard input to what it runs in the background.
_UNTIL_PYTHON_ENDS = """
exec 3<&0
{ read -r line <&3 || kill -9 $$; } &
exec "$@" </dev/null 3<&-
"""


class JavaProcess:
    """Java with arguments, its output in a file; it runs from the moment that this is made."""

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
                # Ctrl-C is for Python, which then ends Java in its own way.
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
        """The exit code, negative for a signal; None when Java still runs after ``seconds``."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._release_watcher()
        return code

    def ask_to_end(self) -> None:
        """Send SIGTERM, and do not wait."""
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
