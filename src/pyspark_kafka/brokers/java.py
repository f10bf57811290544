"""The Java on this machine, and its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import JavaError

_ANSWER_SECONDS = 30.0


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
        # If the variable is set, Spark's own scripts run no other java.
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
    """Return what a Java says about its version, or an empty text if it says nothing."""
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
