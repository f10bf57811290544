"""The kernels that decode and encode Avro, with the arguments that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernels.kernel_call import KernelCall
from .decode_kernel import decode_values
from .encode_kernel import encode_avro

if TYPE_CHECKING:
    from collections.abc import Iterator


def kernel_calls() -> Iterator[KernelCall]:
    """Yield all kernels of this folder."""
    yield KernelCall(decode_values, (0, 0, 0, 0))
    yield KernelCall(encode_avro, (0, 0, 0, 0))
