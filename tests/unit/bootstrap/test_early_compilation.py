"""Compiling while Spark starts."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.bootstrap import early_compilation, kernels

from .test_loading import KERNELS, loaded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only directory of kernels."""
    monkeypatch.setattr(early_compilation, "cache_directories", lambda _: [tmp_path])
    return tmp_path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the folders whose kernels are compiled."""
    folders: list[object] = []

    def compile_kernels(given: Sequence[str]) -> Sequence[object]:
        folders.extend(given)
        return ()

    monkeypatch.setattr(kernels, "compile_kernels", compile_kernels)
    return folders


@pytest.mark.usefixtures("cache")
def test_kernels_are_compiled_on_a_new_machine(compiled: list[object]) -> None:
    """They are those of records: most queries have no typed values."""
    early_compilation.main()
    assert compiled == ["kafka_format", "partitioning"]


def test_nothing_is_compiled_where_kernels_are(cache: Path, compiled: list[object]) -> None:
    """A session starts often, and a machine compiles once."""
    (cache / "decode_kernel.decode_records-0.kernel").touch()
    early_compilation.main()
    assert compiled == []


def test_looking_for_kernels_loads_no_compiler() -> None:
    """It is done at the start of every session."""
    found = loaded("from pyspark_kafka.bootstrap import early_compilation as e; e.has_kernels()")
    assert not found & (KERNELS | {"pyarrow"})


def test_another_process_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs the Python of Spark's workers; without it there is no error."""
    commands: list[Any] = []

    def run(command: list[str], **_: object) -> None:
        commands.append(command)
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for python in (sys.executable, "/opt/python"):
        early_compilation.compile_while_spark_starts()
        for thread in threading.enumerate():
            if thread.name == "pyspark-kafka-compilation":
                thread.join()
        assert commands[-1] == [python, "-m", early_compilation.__name__]
        monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
