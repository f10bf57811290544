"""The Pythons of this machine."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_ANSWER_SECONDS: Final = 30.0


def find_python(version: str) -> Path | None:
    """Return the Python of a version such as ``3.12``: of pyenv, or else from the ``PATH``."""
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    of_pyenv = sorted((home / "versions").glob(f"{version}.*/bin/python"), key=_micro_version)
    on_path = shutil.which(f"python{version}")
    candidates = [*reversed(of_pyenv), *([Path(on_path)] if on_path else [])]
    return next((each for each in candidates if _runs(each, version)), None)


def _micro_version(python: Path) -> int:
    micro = python.parents[1].name.rpartition(".")[2]
    return int(micro) if micro.isdecimal() else -1


def _runs(python: Path, version: str) -> bool:
    """Return whether a Python is one: a shim of pyenv may lead to none."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [python, "-c", program],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == version
