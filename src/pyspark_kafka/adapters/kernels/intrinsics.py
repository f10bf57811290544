"""Intrinsics: what kernels need and numba has no function for."""

from __future__ import annotations

from typing import Any

from .compiled import intrinsic
from .lazy import cgutils, ir, types


@intrinsic
def borrowed(_typing: Any, arrays: Any) -> Any:
    """Return the same array, or tuple of arrays, without reference counting.

    The result is valid only while the caller's own reference is. Numba counts references to an
    array at each function call, with atomic instructions: several times the cost of decoding a
    record.
    """
    signature = arrays(arrays)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_meminfo(context, builder, signature.return_type, arguments[0])

    return signature, generate


def _without_meminfo(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        stripped = [
            _without_meminfo(context, builder, *typed) for typed in zip(kind, parts, strict=True)
        ]
        return context.make_tuple(builder, kind, stripped)
    view = context.make_array(kind)(context, builder, value)
    view.meminfo = cgutils.get_null_value(view.meminfo.type)
    view.parent = cgutils.get_null_value(view.parent.type)
    return view._getvalue()  # noqa: SLF001  # numba has no public name for it


@intrinsic
def copy_bytes(_typing: Any, target: Any, at: Any, source: Any, start: Any, length: Any) -> Any:
    """Copy ``source[start:start + length]`` to ``target[at:]`` without bounds checks.

    Both are arrays of bytes. A loop is four times slower than this ``memcpy``.
    """
    signature = types.void(target, types.int64, source, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, at, source, start, length = arguments
        to = context.make_array(signature.args[0])(context, builder, target).data
        data = context.make_array(signature.args[2])(context, builder, source).data
        cgutils.raw_memcpy(builder, builder.gep(to, [at]), builder.gep(data, [start]), length, 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def copy_from(_typing: Any, target: Any, at: Any, address: Any, length: Any) -> Any:
    """Copy ``length`` bytes from an address to ``target[at:]`` without bounds checks."""
    signature = types.void(target, types.int64, types.uint64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, at, address, length = arguments
        to = context.make_array(signature.args[0])(context, builder, target).data
        data = builder.inttoptr(address, ir.IntType(8).as_pointer())
        cgutils.raw_memcpy(builder, builder.gep(to, [at]), data, length, 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def leading_zeros(_typing: Any, number: Any) -> Any:
    """Return the number of leading zero bits of an unsigned 64-bit number that is not 0."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate
