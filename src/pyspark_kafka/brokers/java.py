"""Which Java there is, and whether it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ..domain.errors import JavaError

_ANSWER_SECONDS = 30.0


def require_java(minimum: int = 17) -> Path:
    """The ``java`` to run: that of ``JAVA_HOME``, or else the first on the ``PATH``.

    Raises ``JavaError`` when there is none, or when its major version is below ``minimum``.
    """
    java = find_java(minimum)
    answer = _version_answer(java)
    major = major_version(answer)
    if major is None:
        raise JavaError(f"{java} does not tell its version", minimum)
    if major < minimum:
        raise JavaError(f"{java} is Java {major}", minimum)
    return java


def find_java(minimum: int) -> Path:
    """Where ``java`` is, whatever its version; ``JavaError`` tells of the ``minimum``."""
    home = os.environ.get("JAVA_HOME")
    if home:
        # Spark's own scripts take JAVA_HOME's java and no other when the variable is set.
        found = shutil.which("java", path=str(Path(home) / "bin"))
        missing = f"JAVA_HOME is {home}, which holds no bin/java"
    else:
        found = shutil.which("java")
        missing = "there is no java on the PATH"
    if found is None:
        raise JavaError(missing, minimum)
    return Path(found).absolute()


def major_version(answer: str) -> int | None:
    """The major version in what ``java -version`` prints; None when there is none in it."""
    # Up to Java 8 the major version is the second number: "1.8.0_292".
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(match[1]) if match else None


def _version_answer(java: Path) -> str:
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
