"""The processor that kernels are compiled for."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

import llvmlite.binding as llvm

CPU_NAME: Final = "NUMBA_CPU_NAME"
CPU_FEATURES: Final = "NUMBA_CPU_FEATURES"


@cache
def processor() -> tuple[str, str]:
    """Return LLVM's name of the processor, and its features besides those that the name says.

    They are this machine's, or those of numba's variables. A name without features has no more
    than every processor of that name: numba would add this machine's.
    """
    features = os.environ.get(CPU_FEATURES, "")
    if name := os.environ.get(CPU_NAME):
        return name, features
    return llvm.get_host_cpu_name(), features or _host_features()


def _host_features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:
        # LLVM knows them for some processors only.
        return ""
