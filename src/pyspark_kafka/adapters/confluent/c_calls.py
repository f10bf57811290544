"""Intrinsics that call C functions and read C structures by their addresses.

Numba does not cache functions that hold a ctypes pointer; an address is an ordinary number.
"""

from __future__ import annotations

from typing import Any

from ..kernels.compiled import intrinsic
from ..kernels.lazy import cgutils, ir, types


def c_function(result: str, *parameters: str) -> Any:
    """Return an intrinsic that calls a C function: ``call(address, (argument, ...))``.

    The types have numba's names.
    """

    @intrinsic
    def call(_typing: Any, _address: Any, _arguments: Any) -> Any:
        parameter_types = [getattr(types, name) for name in parameters]
        signature = getattr(types, result)(types.uint64, types.Tuple(parameter_types))

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, argument_tuple = arguments
            kinds = [context.get_value_type(parameter) for parameter in parameter_types]
            is_void = signature.return_type == types.void
            returned = ir.VoidType() if is_void else context.get_value_type(signature.return_type)
            pointer = builder.inttoptr(address, ir.FunctionType(returned, kinds).as_pointer())
            value = builder.call(pointer, cgutils.unpack_tuple(builder, argument_tuple))
            return context.get_dummy_value() if is_void else value

        return signature, generate

    return call


def _load(name: str) -> Any:
    @intrinsic
    def load(_typing: Any, _address: Any) -> Any:
        kind = getattr(types, name)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            return builder.load(pointer)

        return kind(types.uint64), generate

    return load


byte_at = _load("uint8")
int32_at = _load("int32")
int64_at = _load("int64")
uint64_at = _load("uint64")
