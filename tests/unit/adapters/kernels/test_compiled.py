"""Where compiled kernels are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_kafka

PROGRAM = """
from pyspark_kafka.adapters.kernels.compiled import compiled

@compiled
def twice(number):
    return 2 * number

print(twice(21), sum(twice.stats.cache_hits.values()), bool(twice.stats.cache_path))
"""
NOWHERE = "/dev/null/nowhere"


def run(program: Path, cache: Path | str) -> str:
    """Run a program whose user has a home and caches in one folder, which may not be one."""
    homes = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "IPYTHONDIR")
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    environment |= dict.fromkeys(homes, str(cache))
    environment |= {"PYTHONPATH": str(Path(pyspark_kafka.__file__).parents[1])}
    environment |= {"NUMBA_CACHE_DIR": NOWHERE}  # a wrong setting is ignored
    command = [sys.executable, "-B", "-W", "error", str(program)]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program with a kernel."""
    (tmp_path / "code").mkdir()
    path = tmp_path / "code" / "program.py"
    path.write_text(PROGRAM)
    return path


def let_nobody_write(program: Path) -> None:
    """Put a file where a folder for compiled code would be made; that holds for root as well."""
    (program.parent / "__pycache__").write_text("")


def test_kept_beside_the_module(program: Path) -> None:
    """What was compiled is kept beside the module, and is there the next time."""
    assert run(program, NOWHERE) == "42 0 True"
    assert list((program.parent / "__pycache__").glob("program.twice*"))
    assert run(program, NOWHERE) == "42 1 True"


def test_kept_in_the_users_cache(program: Path, tmp_path: Path) -> None:
    """Where the module's folder cannot be written, the user's cache has it."""
    let_nobody_write(program)
    assert run(program, tmp_path) == "42 0 True"
    assert run(program, tmp_path) == "42 1 True"


def test_not_kept(program: Path) -> None:
    """Where nothing can be written, each process compiles for itself."""
    let_nobody_write(program)
    assert run(program, NOWHERE) == "42 0 False"
    assert run(program, NOWHERE) == "42 0 False"


def test_compiled_anew_when_another_module_changes(program: Path) -> None:
    """A kernel is made of functions of other modules, so that a change of one counts."""
    assert run(program, NOWHERE) == "42 0 True"
    (program.parent / "another.py").write_text("")
    assert run(program, NOWHERE) == "42 0 True"
    assert run(program, NOWHERE) == "42 1 True"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("nbi", b""),
        ("nbi", b"\x80\x05\x8c\x01\xff."),  # no text
        ("nbc", b""),
        ("nbc", b"cno_module\nname\n."),
    ],
)
def test_a_file_that_is_damaged(program: Path, kind: str, content: bytes) -> None:
    """An unreadable cache entry is compiled again and saved."""
    run(program, NOWHERE)
    for kept in (program.parent / "__pycache__").glob(f"program.twice*.{kind}"):
        kept.write_bytes(content)
    assert run(program, NOWHERE).startswith("42 0")


PARTS = """
from pyspark_kafka.adapters.kernels.compiled import (
    compiled, compiled_part, inlined, kernel_function
)
from pyspark_kafka.adapters.kernels.memory import call_address

@inlined
def same(number):
    return number

@kernel_function
def twice(number):
    return 2 * same(number)

@compiled_part
def product(one, two, three, four, five, six):
    return twice(one) * two * three * four * five * six

@compiled
def call(address):
    return call_address(address, 1, 2, 3, 4, 5, 6) + twice(1) + twice(-1)

print(call(product.address), len(twice.overloads))
for function in (same, twice):
    try:
        function(1)
    except TypeError as error:
        print(error)
"""


def test_parts_of_kernels(program: Path) -> None:
    """A kernel calls a part by its address, compiled or cached; Python calls kernels only."""
    program.write_text(PARTS)
    refused = [f"{name} is a part of kernels: Python cannot call it" for name in ("same", "twice")]
    assert run(program, NOWHERE).splitlines() == ["1440 1", *refused]
    assert list((program.parent / "__pycache__").glob("program.product*.nbc"))
    # Nothing else is compiled for what is cached.
    assert run(program, NOWHERE).splitlines()[0] == "1440 0"
