"""A Java process that does not outlive the Python process that started it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

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
