"""Where compiled kernels are kept."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import pyspark_kafka
from pyspark_kafka.adapters.kernels.arrays import read_only
from pyspark_kafka.adapters.kernels.compiled import compiled
from pyspark_kafka.adapters.kernels.kernel_cache import is_trusted
from pyspark_kafka.adapters.kernels.machine_code import KernelError

PROGRAM = """
import sys
from pyspark_kafka.adapters.kernels.compiled import compiled
from pyspark_kafka.adapters.kernels.kernel_call import KernelCall

@compiled
def twice(number):
    return 2 * number

if "ahead" in sys.argv:
    print(KernelCall(twice, (0,)).compile().path, twice.loaded)
else:
    print(twice(21), twice.cache.hits, "numba" in sys.modules)
"""
KEPT = "program.twice-*.kernel"
NOWHERE = "/dev/null/nowhere"
CPU: dict[str, str] = {}


def run(program: Path, cache: Path | str, *arguments: str) -> str:
    """Run a program whose user has a home and caches in one folder, which may not be one."""
    homes = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "IPYTHONDIR")
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    environment |= dict.fromkeys(homes, str(cache))
    environment |= {"PYTHONPATH": str(Path(pyspark_kafka.__file__).parents[1])}
    environment |= {"NUMBA_CACHE_DIR": NOWHERE, **CPU}  # a wrong setting is ignored
    command = [sys.executable, "-B", "-W", "error", str(program), *arguments]
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


def kept_file(program: Path) -> Path:
    """Return the file of a kernel that is kept beside the module."""
    (path,) = (program.parent / "__pycache__").glob(KEPT)
    return path


def test_kept_beside_the_module(program: Path) -> None:
    """What was compiled is kept beside the module, and the next process does without numba."""
    assert run(program, NOWHERE) == "42 0 True"
    assert kept_file(program).stat().st_mode & 0o777 == 0o644
    assert run(program, NOWHERE) == "42 1 False"


def test_kept_in_the_users_cache(program: Path, tmp_path: Path) -> None:
    """Where the module's folder cannot be written, the user's cache has it."""
    let_nobody_write(program)
    assert run(program, tmp_path) == "42 0 True"
    (kept,) = tmp_path.rglob(KEPT)
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert run(program, tmp_path) == "42 1 False"


def test_not_kept(program: Path) -> None:
    """Where nothing can be written, each process compiles for itself."""
    let_nobody_write(program)
    assert run(program, NOWHERE) == "42 0 True"
    assert run(program, NOWHERE) == "42 0 True"


def test_compiled_anew_when_another_module_changes(program: Path) -> None:
    """A kernel is made of functions of other modules, so that a change of one counts."""
    assert run(program, NOWHERE) == "42 0 True"
    (program.parent / "another.py").write_text("")
    assert run(program, NOWHERE) == "42 0 True"
    assert kept_file(program).is_file()
    os.utime(program, (1, 1))  # as the layers of an image may
    assert run(program, NOWHERE) == "42 1 False"


def test_another_processor(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for a processor is not used on another."""
    assert run(program, NOWHERE) == "42 0 True"
    monkeypatch.setattr(sys.modules[__name__], "CPU", {"NUMBA_CPU_NAME": "x86-64"})
    assert run(program, NOWHERE) == "42 0 True"
    assert len(list((program.parent / "__pycache__").glob(KEPT))) == 2


def test_compiled_ahead_for_a_processor(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that names the processor finds what another one compiled without loading it."""
    monkeypatch.setattr(sys.modules[__name__], "CPU", {"NUMBA_CPU_NAME": llvm.get_host_cpu_name()})
    printed = run(program, NOWHERE, "ahead")
    assert printed == f"{kept_file(program)} {{}}"
    assert run(program, NOWHERE) == "42 1 False"


@pytest.mark.parametrize("damage", [b"", b"another format", None])
def test_a_file_that_is_damaged(program: Path, damage: bytes | None) -> None:
    """An unreadable cache entry is compiled again and saved."""
    run(program, NOWHERE)
    kept = kept_file(program)
    content = kept.read_bytes()
    kept.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if damage is None else damage)
    assert run(program, NOWHERE) == "42 0 True"


def test_a_file_that_others_can_write(program: Path) -> None:
    """It is machine code: it is not run if anyone else may have written it."""
    run(program, NOWHERE)
    kept_file(program).chmod(0o664)
    assert run(program, NOWHERE) == "42 0 True"
    assert run(program, NOWHERE) == "42 1 False"


def test_a_link_to_a_file(program: Path, tmp_path: Path) -> None:
    """A link is replaced: it may lead to a file of somebody else's choice."""
    run(program, NOWHERE)
    kept = kept_file(program)
    kept.rename(tmp_path / "moved")
    kept.symlink_to(tmp_path / "moved")
    assert run(program, NOWHERE) == "42 0 True"
    assert not kept.is_symlink()


@pytest.mark.parametrize(
    ("mode", "owner", "trusted"),
    [
        (0o644, os.geteuid(), True),
        (0o644, 0, True),
        (0o644, 54_321, False),
        (0o664, 0, False),
        (0o646, 0, False),
    ],
)
def test_the_owner_of_a_file(tmp_path: Path, mode: int, owner: int, trusted: bool) -> None:
    """Root, this user and the owner of the module are trusted if only they can write it."""
    source = tmp_path / "module.py"
    source.touch()
    found = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))
    assert is_trusted(found, source) is trusted


def test_one_process_compiles(program: Path) -> None:
    """Of several processes that need a kernel, one compiles it, and the others wait."""
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(run, [program] * 3, [NOWHERE] * 3))
    assert sorted(found) == ["42 0 True", "42 1 False", "42 1 False"]


@compiled
def _sums(numbers: Any, pair: Any, factor: int) -> Any:
    first, second = pair
    total = first[0]
    for place in range(len(second)):
        total += np.uint64(second[place])
    return numbers[1, 2] * factor, total, len(numbers) > factor


@compiled
def _set(numbers: Any, value: int) -> None:
    numbers[0] = value


def test_arguments_and_results() -> None:
    """A kernel takes integers, arrays of any layout and tuples, and returns integers or nothing."""
    numbers = np.arange(6, dtype=np.int32).reshape(2, 3)
    pair = (read_only(np.full(1, 2**63, np.uint64)), np.arange(8, dtype=np.uint8)[::2])
    assert _sums(numbers, pair, 2) == (10, 2**63 + 12, False)
    assert _sums(np.asfortranarray(numbers), pair, -3) == (-15, 2**63 + 12, True)
    one: Any = np.int64(1)
    assert _sums(numbers[:, :], pair, one) == (5, 2**63 + 12, True)
    target = np.zeros(1, np.int64)
    assert _set(target, -7) is None
    assert target[0] == -7


def test_kinds_of_arguments() -> None:
    """Code is loaded once for all arrays of a type."""
    for length in (0, 1, 5):
        _set(np.zeros(1 + length, np.int16), length)
    loaded: dict[tuple[object, ...], object] = _set.loaded  # type: ignore[attr-defined]
    assert sum(np.dtype(np.int16) in kinds for kinds in loaded) == 1


@pytest.mark.parametrize("wrong", [1.5, None, "text", [1], 2**63, np.ma.masked_array([1])])
def test_what_kernels_do_not_take(wrong: Any) -> None:
    """Any other argument is refused, as its memory would be misread."""
    with pytest.raises(TypeError, match="kernels do not take"):
        _set(wrong, 1)


def test_a_kernel_that_fails() -> None:
    """An error in a kernel is raised."""

    @compiled
    def fail(number: int) -> int:
        if number > 0:
            raise ValueError
        return number

    assert fail(0) == 0
    with pytest.raises(KernelError):
        fail(1)


def test_a_kernel_that_allocates() -> None:
    """What only numba's runtime has is refused when it is compiled: a process would end."""

    @compiled
    def allocate(count: int) -> int:
        return len(np.empty(count, np.int64))

    with pytest.raises(RuntimeError, match="only numba has"):
        allocate(3)


def test_pickled() -> None:
    """A kernel is pickled by its name."""
    assert pickle.loads(pickle.dumps(_set)) is _set  # noqa: S301


PARTS = """
import sys
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

print(call(product.address), "numba" in sys.modules)
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
    assert run(program, NOWHERE).splitlines() == ["1440 True", *refused]
    assert list((program.parent / "__pycache__").glob("program.product-*.kernel"))
    assert run(program, NOWHERE).splitlines() == ["1440 False", *refused]
