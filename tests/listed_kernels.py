"""Whether kernels are called with arguments of the types that ``kernel_calls`` lists."""

from __future__ import annotations

from pyspark_kafka.adapters.kernels.compiled import Kernel
from pyspark_kafka.bootstrap.kernels import kernel_calls


def unlisted_kernels() -> dict[str, list[tuple[object, ...]]]:
    """Return the kinds of arguments by which this process has called kernels and nothing lists."""
    listed = {call.kernel: call for call in kernel_calls()}
    found = {
        call.name: [kinds for kinds in kernel.loaded if kinds != call.kinds]
        for kernel, call in listed.items()
        if isinstance(kernel, Kernel)
    }
    return {name: kinds for name, kinds in found.items() if kinds}
