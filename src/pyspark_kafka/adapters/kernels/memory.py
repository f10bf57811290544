"""Access of kernels to memory by its address, and their computations with bits.

Addresses are 64-bit numbers: numba counts no references to them, and nothing checks them. Callers
check first that the memory is there.
"""

from __future__ import annotations

from .parts import intrinsic

load_uint8 = intrinsic("load_uint8")
load_int8 = intrinsic("load_int8")
load_int16 = intrinsic("load_int16")
load_int32 = intrinsic("load_int32")
load_int64 = intrinsic("load_int64")
load_uint32 = intrinsic("load_uint32")
load_uint64 = intrinsic("load_uint64")
store_uint8 = intrinsic("store_uint8")
store_int8 = intrinsic("store_int8")
store_int16 = intrinsic("store_int16")
store_int32 = intrinsic("store_int32")
store_uint32 = intrinsic("store_uint32")
store_int64 = intrinsic("store_int64")
store_uint64 = intrinsic("store_uint64")
store_float = intrinsic("store_float")
store_double = intrinsic("store_double")

copy_memory = intrinsic("copy_memory")
"""Copy ``length`` bytes from one address to another; the two do not overlap."""

trailing_zeros = intrinsic("trailing_zeros")
"""Return the number of trailing zero bits of an unsigned 64-bit number that is not 0."""

double_of_bits = intrinsic("double_of_bits")
"""Return the 64-bit floating-point number of a bit pattern."""

float_of_bits = intrinsic("float_of_bits")
"""Return the 32-bit floating-point number of a bit pattern."""

bits_of_double = intrinsic("bits_of_double")
"""Return the bit pattern of a 64-bit floating-point number."""

high_product = intrinsic("high_product")
"""Return the upper 64 bits of the product of two unsigned 64-bit numbers."""

copy_bytes = intrinsic("copy_bytes")
"""``copy_bytes(target, at, source, start, length)``: copy bytes between arrays of bytes.

They go from ``start`` of the source to ``at`` of the target, without checks of bounds. A loop is
four times slower than this ``memcpy``.
"""

copy_from = intrinsic("copy_from")
"""``copy_from(target, at, address, length)``: copy bytes from an address to an array of bytes."""

leading_zeros = intrinsic("leading_zeros")
"""``leading_zeros(number)``: return those of an unsigned 64-bit number that is not 0."""
