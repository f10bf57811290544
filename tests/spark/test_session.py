"""Sessions with the settings that pay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "start_sessions.py"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Run the program in a process of its own: a JVM has its settings from its start."""
    ran = subprocess.run(
        [sys.executable, PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    answers: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answers


def test_what_pays_is_set(found: dict[str, Any]) -> None:
    """Sockets of the file system are used, and filters reach sources in Python."""
    assert (found["sockets"], found["filters"]) == ("true", "true")
    assert found["warnings"] == []


def test_what_the_user_says_stays(found: dict[str, Any]) -> None:
    """A setting of the builder is not overruled."""
    assert found["buffer"] == "131072"


def test_workers_are_this_python_with_the_kernels_loaded(found: dict[str, Any]) -> None:
    """A worker is forked from a process that has loaded, and spared, what a first read needs."""
    assert found["python"]
    assert found["kernels"]
    assert found["spared"]


def test_a_session_that_is_there_is_kept_and_what_it_lacks_is_said(found: dict[str, Any]) -> None:
    """Settings of a JVM cannot be changed once it runs."""
    assert found["same"]
    [late] = found["late"]
    assert late.startswith("Reusing an existing session, which lacks spark.buffer.size")
