"""Whether kernels are called with arguments of the types that ``kernel_calls`` lists."""

from __future__ import annotations

from functools import cache

from pyspark_kafka.adapters.kernels.compiled import Kernel
from pyspark_kafka.bootstrap.kernels import kernel_calls


def unlisted_kernels() -> dict[str, list[tuple[object, ...]]]:
    """Return the kinds of arguments by which this process has called kernels and nothing lists."""
    found = {
        kernel.name: [kinds for kinds in kernel.loaded if kinds != listed]
        for kernel, listed in _listed()
    }
    return {name: kinds for name, kinds in found.items() if kinds}


@cache
def _listed() -> list[tuple[Kernel, tuple[object, ...]]]:
    return [(call.kernel, call.kinds) for call in kernel_calls() if isinstance(call.kernel, Kernel)]
