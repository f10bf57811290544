"""Virtual environments of the competitors, each made when it is first needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .competitors import Environment

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "alternatives"
INSTALL_SECONDS: Final = 900.0


class InstallError(Exception):
    """An environment could not be made."""


def python_of(environment: Environment) -> Path:
    """Return an environment's Python, after installing its requirements.

    :raises InstallError: with the last line of pip's output.
    """
    if not environment.requirements:
        return Path(sys.executable)
    folder = FOLDER / environment.name
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join(environment.requirements)
    if not (installed.exists() and installed.read_text() == wanted):
        print(f"installing {', '.join(environment.requirements)} ...", file=sys.stderr, flush=True)
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", *environment.requirements)
        installed.write_text(wanted)
    return python


def _run(*command: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - Python and pip, with requirements of our own
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"took more than {INSTALL_SECONDS:.0f} s") from None
    if done.returncode:
        raise InstallError((done.stderr or done.stdout).strip().splitlines()[-1])
