"""The LLVM IR of what kernels need and numba has no function for, by the names of ``intrinsic``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

if TYPE_CHECKING:
    from collections.abc import Mapping


def _load(bits: int, kind: str) -> Any:
    def load(_typing: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value = builder.load(_pointer(builder, arguments[0], ir.IntType(bits)))
            value.align = 1
            return value

        return getattr(types, kind)(types.int64), generate

    return extending.intrinsic(load)


def _store(bits: int, kind: str) -> Any:
    def store(_typing: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, value = arguments
            bits_of_value = builder.bitcast(value, ir.IntType(bits))
            builder.store(bits_of_value, _pointer(builder, address, ir.IntType(bits)), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, getattr(types, kind)), generate

    return extending.intrinsic(store)


def _pointer(builder: Any, address: Any, to: Any) -> Any:
    return builder.inttoptr(address, to.as_pointer())


def _bitcast(to: str, from_: str) -> Any:
    def bitcast(_typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

        return getattr(types, to)(getattr(types, from_)), generate

    return extending.intrinsic(bitcast)


@extending.intrinsic
def copy_memory(_typing: Any, target: Any, source: Any, length: Any) -> Any:
    """Copy ``length`` bytes from one address to another; the two do not overlap."""
    signature = types.void(types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source, length = arguments
        byte = ir.IntType(8)
        to, data = _pointer(builder, target, byte), _pointer(builder, source, byte)
        cgutils.raw_memcpy(builder, to, data, length, 1)
        return context.get_dummy_value()

    return signature, generate


@extending.intrinsic
def trailing_zeros(_typing: Any, number: Any) -> Any:
    """Return the number of trailing zero bits of an unsigned 64-bit number that is not 0."""
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


@extending.intrinsic
def high_product(_typing: Any, one: Any, other: Any) -> Any:
    """Return the upper 64 bits of the product of two unsigned 64-bit numbers."""
    signature = types.uint64(types.uint64, types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        one, other = (builder.zext(argument, wide) for argument in arguments)
        product = builder.lshr(builder.mul(one, other), ir.Constant(wide, 64))
        return builder.trunc(product, ir.IntType(64))

    return signature, generate


@extending.intrinsic
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


@extending.intrinsic
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


@extending.intrinsic
def leading_zeros(_typing: Any, number: Any) -> Any:
    """Return the number of leading zero bits of an unsigned 64-bit number that is not 0."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


def c_function(result: str, *parameters: str) -> Any:
    """Return an intrinsic that calls a C function: ``call(address, (argument, ...))``."""

    @extending.intrinsic
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


INTRINSICS: Final[Mapping[str, Any]] = {
    "load_uint8": _load(8, "uint8"),
    "load_int8": _load(8, "int8"),
    "load_int16": _load(16, "int16"),
    "load_int32": _load(32, "int32"),
    "load_int64": _load(64, "int64"),
    "load_uint32": _load(32, "uint32"),
    "load_uint64": _load(64, "uint64"),
    "store_uint8": _store(8, "uint8"),
    "store_int8": _store(8, "int8"),
    "store_int16": _store(16, "int16"),
    "store_int32": _store(32, "int32"),
    "store_uint32": _store(32, "uint32"),
    "store_int64": _store(64, "int64"),
    "store_uint64": _store(64, "uint64"),
    "store_float": _store(32, "float32"),
    "store_double": _store(64, "float64"),
    "copy_memory": copy_memory,
    "trailing_zeros": trailing_zeros,
    "double_of_bits": _bitcast("float64", "uint64"),
    "float_of_bits": _bitcast("float32", "uint32"),
    "bits_of_double": _bitcast("uint64", "float64"),
    "high_product": high_product,
    "copy_bytes": copy_bytes,
    "copy_from": copy_from,
    "leading_zeros": leading_zeros,
    "c_function": c_function,
}
