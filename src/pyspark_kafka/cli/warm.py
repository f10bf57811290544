"""``pyspark-kafka warm``: compile all kernels ahead."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from ..bootstrap.kernels import CPU_NAME, FOLDERS, RECORDS, compile_kernels, select_processor
from .console import Console

if TYPE_CHECKING:
    from ..bootstrap.kernels import CompiledKernel
    from .warm_arguments import WarmSettings


def run_warm(settings: WarmSettings) -> int:
    """Compile the kernels, and return the exit status.

    :raises OptionsError: if LLVM does not know the processor.
    :raises OSError: if compiled kernels cannot be stored.
    """
    console = Console(sys.stdout)
    cpu = select_processor(settings.cpu)
    done: list[CompiledKernel] = []
    for kernel in compile_kernels(FOLDERS if settings.has_formats else RECORDS):
        done.append(kernel)
        if not settings.as_json:
            console.line(_line(kernel))
    if settings.as_json:
        console.line(json.dumps({"cpu": cpu, "kernels": [_entry(kernel) for kernel in done]}))
        return 0
    compiled = sum(kernel.is_new for kernel in done)
    console.line()
    console.line(f"{compiled} of {len(done)} kernels were compiled, for {cpu}.")
    if settings.cpu is not None:
        console.line(f"Set {CPU_NAME}={cpu} where Spark runs: other processes do not find them.")
    return 0


def _line(kernel: CompiledKernel) -> str:
    state = f"compiled in {kernel.seconds:4.1f} s" if kernel.is_new else "was in the cache"
    return f"{kernel.name:<32} {state}  {kernel.path}"


def _entry(kernel: CompiledKernel) -> dict[str, object]:
    return {
        "name": kernel.name,
        "path": str(kernel.path),
        "compiled": kernel.is_new,
        "seconds": round(kernel.seconds, 3),
    }
