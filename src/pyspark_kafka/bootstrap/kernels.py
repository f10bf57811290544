"""All kernels of this package, to load or compile them before they are needed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, final

from ..adapters.kernels.processor import CPU_FEATURES, CPU_NAME, processor
from ..domain.errors import OptionsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ..adapters.kernels.kernel_call import KernelCall

__all__ = [
    "CPU_NAME",
    "FOLDERS",
    "RECORDS",
    "CompiledKernel",
    "compile_kernels",
    "kernel_calls",
    "select_processor",
]

RECORDS: Final = ("kafka_format", "partitioning", "confluent")
"""The folders of adapters with the kernels of records."""

FOLDERS: Final = (*RECORDS, "value_framing", "avro_values", "json_values", "protobuf_values")
"""All folders that have kernels; in each, a module ``kernel_calls`` lists them."""

_PROBE: Final = (
    "from pyspark_kafka.adapters.kernels.machine_code import target_machine;target_machine()"
)
_PROBE_SECONDS: Final = 60.0


@final
@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel in the cache."""

    name: str
    path: Path
    is_new: bool
    seconds: float


def kernel_calls(folders: Sequence[str] = FOLDERS) -> Iterator[KernelCall]:
    """Yield the kernels of folders, if the packages that they need are installed."""
    for folder in folders:
        try:
            module = import_module(f"pyspark_kafka.adapters.{folder}.kernel_calls")
        except ImportError:
            continue
        yield from module.kernel_calls()


def select_processor(name: str | None) -> str:
    """Compile for a processor from now on, if one is named; return its name.

    Call it before anything is compiled or loaded. Code for another processor must not be loaded.

    :raises OptionsError: if LLVM does not know it.
    """
    if name is not None:
        _require_known(name)
        os.environ[CPU_NAME] = name
        # Otherwise numba optimizes for the features of this machine.
        os.environ.setdefault(CPU_FEATURES, "")
        processor.cache_clear()
    return processor()[0]


def compile_kernels(folders: Sequence[str] = FOLDERS) -> Iterator[CompiledKernel]:
    """Compile what is not in the cache, and yield each kernel.

    :raises OSError: if it cannot be stored.
    """
    for call in kernel_calls(folders):
        began = time.perf_counter()
        cached = call.compile()
        if cached.path is None:
            raise PermissionError(
                f"The compiled kernel {call.name} cannot be stored: neither the package's "
                "directory nor the user's cache can be written. Set NUMBA_CACHE_DIR"
            )
        seconds = time.perf_counter() - began
        yield CompiledKernel(call.name, cached.path, cached.is_new, seconds)


def _require_known(cpu: str) -> None:
    """Check a processor's name: LLVM only writes to stderr that it ignores one."""
    probe = subprocess.run(  # noqa: S603  # the name is passed by the environment
        [sys.executable, "-c", _PROBE],
        env=os.environ | {CPU_NAME: cpu},
        capture_output=True,
        text=True,
        check=False,
        timeout=_PROBE_SECONDS,
    )
    if cpu in probe.stderr:
        problem = (
            f"LLVM does not know the processor '{cpu}' on this architecture. Names are those of "
            "clang's option -mcpu, such as x86-64-v3"
        )
        raise OptionsError([problem])
