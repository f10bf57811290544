"""``pyspark-kafka warm``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import llvmlite.binding as llvm
import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.adapters.kernels.kernel_cache import CachedKernel
from pyspark_kafka.adapters.kernels.processor import CPU_FEATURES, CPU_NAME, processor
from pyspark_kafka.bootstrap import kernels
from pyspark_kafka.cli.parser import WarmSettings, parse_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def any_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return this machine's processor, and forget at the end which one was selected."""
    for name in (CPU_NAME, CPU_FEATURES):
        monkeypatch.setenv(name, "")
    processor.cache_clear()
    yield llvm.get_host_cpu_name()
    processor.cache_clear()


def test_arguments() -> None:
    """The default is every kernel, for this machine."""
    assert parse_arguments(["warm"]) == WarmSettings()
    given = ["warm", "--cpu", "x86-64-v3", "--records-only", "--json"]
    assert parse_arguments(given) == WarmSettings("x86-64-v3", has_formats=False, as_json=True)


def test_kernels_are_compiled_and_found(capsys: pytest.CaptureFixture[str]) -> None:
    """It says where each kernel is; a second run compiles nothing."""
    assert main(["warm", "--records-only"]) == 0
    assert "kafka_format.decode_records" in capsys.readouterr().out
    assert main(["warm", "--records-only", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["cpu"] == processor()[0]
    assert {"kafka_format.encode_records", "partitioning.sort_rows", "confluent.gather"} <= {
        kernel["name"] for kernel in printed["kernels"]
    }
    assert not any(kernel["compiled"] for kernel in printed["kernels"])
    assert all(Path(kernel["path"]).is_file() for kernel in printed["kernels"])


class StoredCall:
    """A kernel that was compiled, and may have been stored."""

    name = "folder.kernel"

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def compile(self) -> CachedKernel:
        """Return the cached code."""
        return CachedKernel(b"", self._path, is_new=True)


def test_a_named_processor(
    any_processor: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes have to name it as well."""
    monkeypatch.setattr(kernels, "kernel_calls", lambda _: [StoredCall(Path("x"))])
    assert main(["warm", "--cpu", any_processor]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == f"1 of 1 kernels were compiled, for {any_processor}."
    assert f"Set {CPU_NAME}={any_processor}" in lines[-1]
    assert processor() == (any_processor, "")


def test_a_processor_that_llvm_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused: LLVM would compile for the oldest processor."""
    assert main(["warm", "--cpu", "x86-64v3"]) == 1
    assert "LLVM does not know the processor 'x86-64v3'" in capsys.readouterr().err


def test_kernels_that_cannot_be_stored(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would find them."""
    monkeypatch.setattr(kernels, "kernel_calls", lambda _: [StoredCall(None)])
    assert main(["warm"]) == 1
    assert "folder.kernel cannot be stored" in capsys.readouterr().err
