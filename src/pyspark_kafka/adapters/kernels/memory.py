"""Intrinsics that read and write memory by its address.

Addresses are 64-bit numbers: numba counts no references to them, and nothing checks them. Callers
check first that the memory is there.
"""

from __future__ import annotations

from typing import Any

from .compiled import intrinsic
from .lazy import cgutils, ir, types


def _load(bits: int, kind: str) -> Any:
    def load(_typing: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value = builder.load(_pointer(builder, arguments[0], ir.IntType(bits)))
            value.align = 1
            return value

        return getattr(types, kind)(types.int64), generate

    return intrinsic(load)


def _store(bits: int, kind: str) -> Any:
    def store(_typing: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, value = arguments
            bits_of_value = builder.bitcast(value, ir.IntType(bits))
            builder.store(bits_of_value, _pointer(builder, address, ir.IntType(bits)), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, getattr(types, kind)), generate

    return intrinsic(store)


def _pointer(builder: Any, address: Any, to: Any) -> Any:
    return builder.inttoptr(address, to.as_pointer())


load_uint8 = _load(8, "uint8")
load_int8 = _load(8, "int8")
load_int16 = _load(16, "int16")
load_int32 = _load(32, "int32")
load_int64 = _load(64, "int64")
load_uint32 = _load(32, "uint32")
load_uint64 = _load(64, "uint64")

store_uint8 = _store(8, "uint8")
store_int8 = _store(8, "int8")
store_int16 = _store(16, "int16")
store_int32 = _store(32, "int32")
store_uint32 = _store(32, "uint32")
store_int64 = _store(64, "int64")
store_uint64 = _store(64, "uint64")
store_float = _store(32, "float32")
store_double = _store(64, "float64")


@intrinsic
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


@intrinsic
def trailing_zeros(_typing: Any, number: Any) -> Any:
    """Return the number of trailing zero bits of an unsigned 64-bit number that is not 0."""
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


@intrinsic
def double_of_bits(_typing: Any, bits: Any) -> Any:
    """Return the 64-bit floating-point number of a bit pattern."""
    signature = types.float64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return signature, generate


@intrinsic
def float_of_bits(_typing: Any, bits: Any) -> Any:
    """Return the 32-bit floating-point number of a bit pattern."""
    signature = types.float32(types.uint32)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return signature, generate


@intrinsic
def bits_of_double(_typing: Any, number: Any) -> Any:
    """Return the bit pattern of a 64-bit floating-point number."""
    signature = types.uint64(types.float64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return signature, generate


@intrinsic
def high_product(_typing: Any, one: Any, other: Any) -> Any:
    """Return the upper 64 bits of the product of two unsigned 64-bit numbers."""
    signature = types.uint64(types.uint64, types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        one, other = (builder.zext(argument, wide) for argument in arguments)
        product = builder.lshr(builder.mul(one, other), ir.Constant(wide, 64))
        return builder.trunc(product, ir.IntType(64))

    return signature, generate


@intrinsic
def call_address(
    _typing: Any, address: Any, one: Any, two: Any, three: Any, four: Any, five: Any, six: Any
) -> Any:
    """Call the function at an address, which takes six 64-bit numbers and returns one."""
    signature = types.int64(types.int64, *[types.int64] * 6)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        function = ir.FunctionType(word, [word] * 6)
        return builder.call(_pointer(builder, arguments[0], function), arguments[1:])

    return signature, generate
