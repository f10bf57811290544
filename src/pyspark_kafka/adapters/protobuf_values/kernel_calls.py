"""The kernels that decode and encode Protobuf, with the arguments that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernels.kernel_call import KernelCall
from .decode_kernel import decode
from .encode_kernel import encode_protobuf

if TYPE_CHECKING:
    from collections.abc import Iterator


def kernel_calls() -> Iterator[KernelCall]:
    """Yield all kernels of this folder."""
    yield KernelCall(decode, (0,) * 7)
    yield KernelCall(encode_protobuf, (0, 0, 0, 0))
