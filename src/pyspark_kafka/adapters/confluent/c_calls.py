"""Intrinsics that call C functions and read C structures by their addresses.

Numba does not cache functions that hold a ctypes pointer; an address is an ordinary number.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from ..kernels.compiled import intrinsic


def c_function(result: Any, *parameters: Any) -> Any:
    """Return an intrinsic that calls a C function: ``call(address, (argument, ...))``."""

    @intrinsic
    def call(_typing: Any, _address: Any, _arguments: Any) -> Any:
        signature = result(types.uint64, types.Tuple(parameters))

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, argument_tuple = arguments
            kinds = [context.get_value_type(parameter) for parameter in parameters]
            returned = ir.VoidType() if result == types.void else context.get_value_type(result)
            pointer = builder.inttoptr(address, ir.FunctionType(returned, kinds).as_pointer())
            value = builder.call(pointer, cgutils.unpack_tuple(builder, argument_tuple))
            return context.get_dummy_value() if result == types.void else value

        return signature, generate

    return call


def _load(kind: Any) -> Any:
    @intrinsic
    def load(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            return builder.load(pointer)

        return kind(types.uint64), generate

    return load


byte_at = _load(types.uint8)
int32_at = _load(types.int32)
int64_at = _load(types.int64)
uint64_at = _load(types.uint64)
