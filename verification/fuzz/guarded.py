"""Memory that ends where a forbidden page begins: a step too far ends the process."""

import ctypes
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa

_PAGE: Final = mmap.PAGESIZE
_PROT_NONE: Final = 0
_JUNK: Final = 0xA5
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def guarded_empty(count: int, dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
    """Return an array like ``np.empty`` at the end of a page; the next page is protected."""
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    pages = -(-max(size, 1) // _PAGE) * _PAGE
    memory = mmap.mmap(-1, pages + _PAGE)
    whole = np.frombuffer(memory, np.uint8)
    if _LIBC.mprotect(ctypes.c_void_p(whole.ctypes.data + pages), _PAGE, _PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    whole[:pages] = _JUNK
    return whole[pages - size : pages].view(kind)


def guarded_copy(data: bytes) -> np.ndarray[Any, Any]:
    """Return read-only bytes at the end of a page."""
    array = guarded_empty(len(data))
    array[:] = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array


def guarded_array(values: Sequence[bytes]) -> Any:
    """Return binary values of which the last one ends at the end of a page."""
    starts = np.cumsum([0, *map(len, values)], dtype=np.int32)
    buffers: list[Any] = [starts, guarded_copy(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), [None, *map(pa.py_buffer, buffers)])


@contextmanager
def little_memory(limits: Mapping[ModuleType, Mapping[str, Any]]) -> Iterator[None]:
    """Let modules allocate memory that ends at forbidden pages, and little of it at first."""
    with ExitStack() as changed:
        for module, names in limits.items():
            changed.enter_context(patch.multiple(module, np=GuardedNumpy(), **names))
        yield


class GuardedNumpy:
    """Numpy, but for what it allocates for columns and for decompressed bytes."""

    empty = staticmethod(guarded_empty)

    @staticmethod
    def zeros(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Return an array of zeros."""
        zeros = guarded_empty(int(np.prod(shape)), dtype).reshape(shape)
        zeros[:] = 0
        return zeros

    @staticmethod
    def resize(array: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
        """Return an enlarged array; its new part is uninitialized."""
        grown = guarded_empty(count, array.dtype)
        grown[: len(array)] = array
        return grown

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)
