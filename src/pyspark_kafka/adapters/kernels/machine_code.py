"""Machine code in memory, from the object files that the compiler writes.

LLVM's loader needs some 30 ms; numba and its rebuilding of cached functions would need a second.
"""

from __future__ import annotations

import ctypes
import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import llvmlite.binding as llvm

if TYPE_CHECKING:
    from collections.abc import Sequence

_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
"""Called without the GIL."""

_WORD_BYTES: Final = 8


class KernelError(RuntimeError):
    """A kernel ended with an error, as with numba's checks of bounds."""


@final
@dataclass(frozen=True, slots=True)
class Result:
    """The integers that a kernel returns, by numba's names of their types."""

    kinds: tuple[str, ...]
    is_tuple: bool = False

    def of(self, words: bytearray) -> Any:
        """Return the result that a kernel has written."""
        found = struct.unpack_from(f"{len(self.kinds)}q", words)
        if self.kinds == ("int64",):
            return found[0]
        values = tuple(map(_value_of, self.kinds, found))
        if self.is_tuple:
            return values
        return values[0] if values else None


def _value_of(kind: str, word: int) -> int | bool:
    if kind == "boolean":
        return bool(word)
    return word % (1 << 64) if kind == "uint64" else word


@final
class MachineCode:
    """A kernel in memory."""

    def __init__(self, engine: Any, address: int, words: int, result: Result) -> None:
        """Take the engine, which owns the memory, and the number of the arguments' words."""
        self.address = address
        self._engine = engine
        self._function: Any = _FUNCTION(address)
        self._result = result
        self._words = struct.Struct(f"{words}q")
        self._bytes = _WORD_BYTES * max(words, len(result.kinds))
        # A `bytearray` is several times faster than an array of ctypes.
        self._buffer: Any = ctypes.c_char * self._bytes

    def call(self, words: Sequence[int]) -> Any:
        """Call the kernel with the words of its arguments, and return its result.

        :raises KernelError: if it fails.
        """
        buffer = bytearray(self._bytes)
        self._words.pack_into(buffer, 0, *words)
        if self._function(self._buffer.from_buffer(buffer)):
            raise KernelError("a kernel failed")
        return self._result.of(buffer)


def pack(entry: str, result: Result, code: bytes) -> bytes:
    """Return an object file with the name of its function and the types of the result."""
    head = [entry, list(result.kinds), result.is_tuple]
    return json.dumps(head).encode() + b"\n" + code


def load_machine_code(packed: bytes, words: int) -> MachineCode:
    """Load what ``pack`` returned, for arguments of so many words. It is trusted: it is run."""
    head, _, code = packed.partition(b"\n")
    entry, kinds, is_tuple = json.loads(head)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(entry)
    return MachineCode(engine, address, words, Result(tuple(kinds), is_tuple))


def target_machine() -> Any:
    """Return LLVM's description of the processor that kernels are compiled for."""
    from .processor import processor

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    name, features = processor()
    reloc = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=name, features=features, opt=3, reloc=reloc, codemodel="jitdefault", jit=True
    )
