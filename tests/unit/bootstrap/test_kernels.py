"""The list of all kernels."""

from __future__ import annotations

import ast
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pyspark_kafka
from pyspark_kafka.adapters.kernels.compiled import Kernel, KernelPart
from pyspark_kafka.adapters.kernels.kernel_cache import SHARED
from pyspark_kafka.bootstrap.kernels import RECORDS, kernel_calls

ADAPTERS = Path(pyspark_kafka.__file__).parent / "adapters"


def test_every_kernel_is_listed() -> None:
    """What `pyspark-kafka warm` does not know, the first query would compile."""
    compiled = {
        kernel
        for path in ADAPTERS.rglob("*.py")
        if "@compiled" in path.read_text() and path.parent.name != "kernels"
        for kernel in vars(
            import_module(f"pyspark_kafka.adapters.{path.parent.name}.{path.stem}")
        ).values()
        if isinstance(kernel, (Kernel, KernelPart))
    }
    assert compiled == {call.kernel for call in kernel_calls()}
    assert len({call.name for call in kernel_calls()}) == len(compiled)


def test_a_kernel_is_compiled_again_when_a_module_that_it_has_changes() -> None:
    """Constants of other folders are a part of machine code, too."""
    shared = {ADAPTERS.parent / name for name in SHARED} | {ADAPTERS / "kernels"}
    for path in ADAPTERS.glob("*/*.py"):
        text = path.read_text()
        if re.search(r"^@(compiled|inlined|kernel_function|force_inlined)", text, re.MULTILINE):
            for node in ast.parse(text).body:
                if isinstance(node, ast.ImportFrom) and node.level > 1:
                    folder = path.parents[node.level - 1].joinpath(*str(node.module).split("."))
                    assert {folder, folder.parent} & shared, (path, node.module)


@pytest.mark.usefixtures("without_confluent")
def test_kernels_of_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out."""
    monkeypatch.delitem(sys.modules, "pyspark_kafka.adapters.confluent", raising=False)
    folders = {call.name.split(".")[0] for call in kernel_calls(RECORDS)}
    assert folders == {"kafka_format", "partitioning"}
