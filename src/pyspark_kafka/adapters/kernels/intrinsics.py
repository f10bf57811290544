"""What kernels need of a machine and numba has no function for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .compiled import intrinsic


@intrinsic
def borrowed(_typing: Any, arrays: Any) -> Any:
    """Give the same array, or tuple of arrays, without owners.

    It is for use while the function runs that was given them. Numba counts references to an array
    wherever it is handed to a function, with instructions that lock the memory's bus: several
    times the cost of decoding a record.
    """
    signature = arrays(arrays)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.return_type, arguments[0])

    return signature, generate


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        stripped = [
            _without_owner(context, builder, *typed) for typed in zip(kind, parts, strict=True)
        ]
        return context.make_tuple(builder, kind, stripped)
    view = context.make_array(kind)(context, builder, value)
    view.meminfo = cgutils.get_null_value(view.meminfo.type)
    view.parent = cgutils.get_null_value(view.parent.type)
    return view._getvalue()  # noqa: SLF001  # the way to say "this struct as a value"


@intrinsic
def copy_bytes(_typing: Any, into: Any, at: Any, of: Any, start: Any, length: Any) -> Any:
    """Copy ``of[start:start + length]`` to ``into[at:]``, both of bytes. Nothing is checked.

    A loop over the bytes is four times slower than this ``memcpy``.
    """
    signature = types.void(into, types.int64, of, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, at, of, start, length = arguments
        target = context.make_array(signature.args[0])(context, builder, into).data
        source = context.make_array(signature.args[2])(context, builder, of).data
        cgutils.raw_memcpy(
            builder, builder.gep(target, [at]), builder.gep(source, [start]), length, 1
        )
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def copy_from(_typing: Any, into: Any, at: Any, address: Any, length: Any) -> Any:
    """Copy ``length`` bytes that begin at an address to ``into[at:]``. Nothing is checked."""
    signature = types.void(into, types.int64, types.uint64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, at, address, length = arguments
        target = context.make_array(signature.args[0])(context, builder, into).data
        source = builder.inttoptr(address, ir.IntType(8).as_pointer())
        cgutils.raw_memcpy(builder, builder.gep(target, [at]), source, length, 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def leading_zeros(_typing: Any, number: Any) -> Any:
    """Give how many of the highest bits of an unsigned number of 64 are 0, of one that is not 0."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate
