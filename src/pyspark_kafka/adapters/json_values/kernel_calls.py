"""The kernels that decode and encode JSON, with the arguments that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernels.kernel_call import KernelCall
from .decode_kernel import decode_rows
from .encode_kernel import encode_json
from .part_kernel import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator


def kernel_calls() -> Iterator[KernelCall]:
    """Yield all kernels of this folder."""
    yield KernelCall(decode_rows, (0, 0, 0, 0))
    yield KernelCall(encode_json, (0, 0, 0, 0))
    for part in dict.fromkeys(PARTS.values()):
        yield KernelCall(part)
