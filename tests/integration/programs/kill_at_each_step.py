"""Run a command on copies of a directory, killed before each of its changes of files there.

The arguments are the directory, one for the copies, and the command, in which ``{}`` stands for the
copy, and which has an option ``--dry-run``. The copy that is numbered highest has the result of the
command that was not killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Final

from pyspark_kafka.__main__ import main

CHANGES: Final = {"os.link", "os.mkdir", "os.remove", "os.rename"}


def kill_before(step: int, directory: Path) -> None:
    """Kill this process before it changes a file for the nth time."""
    left = step

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_WRONLY
        if (event in CHANGES or writes) and str(arguments[0]).startswith(str(directory)):
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(watch)


def run_killed(step: int, source: Path, directory: Path, arguments: list[str]) -> bool:
    shutil.copytree(source, directory)
    command = os.fork()
    if command == 0:
        kill_before(step, directory)
        os._exit(main([argument.replace("{}", str(directory)) for argument in arguments]))
    _, status = os.waitpid(command, 0)
    if status and not os.WIFSIGNALED(status):
        sys.exit("the command failed")
    return os.WIFSIGNALED(status)


def run(source: Path, copies: Path, arguments: list[str]) -> None:
    """Kill the command at one step after the other, until it has no more."""
    # This loads all that the command needs: a fork is there at once.
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    main([*(argument.replace("{}", str(source)) for argument in arguments), "--dry-run"])
    for step in count():
        if not run_killed(step, source, copies / str(step), arguments):
            break


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
