"""The kernel that finds the payloads of values, with the arguments that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.kernel_call import KernelCall
from .framing_kernel import find_payloads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernels.arrays import Int32Array, Int64Array, UInt8Array


def kernel_calls() -> Iterator[KernelCall]:
    """Yield all kernels of this folder."""
    places: Int64Array = np.empty(0, np.int64)
    reasons: UInt8Array = np.empty(0, np.uint8)
    writers: Int32Array = np.empty(0, np.int32)
    numbers = (0,) * 4, (0,) * 11, (0,) * 2, (0,) * 3
    yield KernelCall(find_payloads, (*numbers, places, places, reasons, writers))
