"""Whether kernels are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .finding import Finding, ok, warning


@final
@dataclass(frozen=True, slots=True)
class KernelCount:
    """The number of kernels that reading and writing need, and how many are compiled."""

    compiled: int
    total: int


def check_kernels(found: KernelCount) -> Finding:
    """Return whether the first task has to compile kernels."""
    summary = f"{found.compiled} of {found.total} are compiled"
    if found.compiled < found.total:
        advice = "The first query compiles them, once. To do that ahead: pyspark-kafka warm"
        return warning("kernels", summary, advice)
    return ok("kernels", summary)
