"""What kernels do with arrays, and numba has no function for."""

from __future__ import annotations

from .parts import intrinsic

borrowed = intrinsic("borrowed")
"""``borrowed(arrays)``: return the same array, or tuple of arrays, without reference counting.

The result is valid only while the caller's own reference is. Numba counts references to an
array at each function call, with atomic instructions: several times the cost of decoding a
record.
"""

copy_bytes = intrinsic("copy_bytes")
"""``copy_bytes(target, at, source, start, length)``: copy bytes between arrays of bytes.

They go from ``start`` of the source to ``at`` of the target, without checks of bounds. A loop is
four times slower than this ``memcpy``.
"""

copy_from = intrinsic("copy_from")
"""``copy_from(target, at, address, length)``: copy bytes from an address to an array of bytes."""

leading_zeros = intrinsic("leading_zeros")
"""``leading_zeros(number)``: return those of an unsigned 64-bit number that is not 0."""
