"""The arguments of kernels: words of 64 bits, and the kinds for which kernels are compiled."""

from __future__ import annotations

from typing import Final

import numpy as np

C_LAYOUT: Final = 0x1
F_LAYOUT: Final = 0x2
ALIGNED: Final = 0x100
WRITEABLE: Final = 0x400
"""Flags of numpy's arrays: https://numpy.org/doc/stable/reference/c-api/array.html."""

_FLAGS: Final = C_LAYOUT | F_LAYOUT | ALIGNED | WRITEABLE

_KINDS: Final = {
    flags: flags & ~F_LAYOUT if flags & C_LAYOUT else flags for flags in range(_FLAGS + 1)
}
"""Flags without what makes no difference: arrays of one dimension have both layouts."""

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1


def words_of(value: object, kinds: list[object], words: list[int]) -> None:
    """Append an argument's kind and its words, which are valid as long as it is referenced.

    An array's word is the address of its object: kernels read the fields of numpy's C structure.

    :raises TypeError: if kernels do not take such values.
    """
    kind = type(value)
    if kind is np.ndarray:
        kinds += (value.dtype, value.ndim, _KINDS[value.flags.num & _FLAGS])  # type: ignore[attr-defined]  # narrowed by its exact type
        words.append(id(value))
    elif kind is int and _INT64_MIN <= value <= _INT64_MAX:  # type: ignore[operator]
        kinds.append(int)
        words.append(value)  # type: ignore[arg-type]
    elif kind is tuple:
        kinds.append(len(value))  # type: ignore[arg-type]
        for each in value:  # type: ignore[attr-defined]
            words_of(each, kinds, words)
    elif isinstance(value, (np.integer, bool)):
        kinds.append(kind)
        words.append(int(value))
    else:
        raise TypeError(f"kernels do not take a {kind.__name__}: {value!r}")
