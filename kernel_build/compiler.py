"""The compiler of kernels: numba's, up to an object file."""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, final

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.np import arrayobj

from pyspark_kafka.adapters.kernels.kernel import Kernel
from pyspark_kafka.adapters.kernels.parts import Intrinsic, Part

from .intrinsics import INTRINSICS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.adapters.kernels.kernel import Kind

    from .targets import Target

_NO_WRAPPERS: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_WORD: Final = ir.IntType(64)

NEEDED: Final = frozenset({"memcpy", "memset", "memmove", "strlen"})
"""The functions that machine code may call: each C library has them."""


def compile_kernel(kernel: Kernel, target: Target) -> bytes:
    """Return the object file of a kernel, with one symbol."""
    arguments = tuple(map(numba_type, kernel.kinds))
    with global_compiler_lock:
        jit = numba.njit(nogil=True, error_model="numpy", pipeline_class=KernelCompiler)
        dispatcher = _for_kernels_only(jit(_with_parts(kernel.function)))
        dispatcher.compile(arguments)
        result = dispatcher.overloads[arguments]
        module = result.target_context.create_module("entry")
        _add_entry(result.target_context, module, result.fndesc, kernel)
        _add_no_counts(module)
        result.library.entry = kernel.symbol
        result.library.add_ir_module(module)
        result.library.finalize()
        code: bytes = result.library.object_file(target)
        return code


def numba_type(kind: Kind) -> Any:
    """Return numba's type of a kind of argument."""
    if isinstance(kind, tuple):
        return types.Tuple(tuple(map(numba_type, kind)))
    if not kind.endswith("]"):
        return getattr(types, kind)
    name, _, dimensions = kind.removeprefix("const ").partition("[")
    read_only = kind.startswith("const ")
    return types.Array(getattr(types, name), dimensions.count(",") + 1, "C", readonly=read_only)


def _new_part(function: Callable[..., object]) -> Any:
    """Return numba's object of a function that kernels call."""
    return _for_kernels_only(numba.njit(error_model="numpy", **_NO_WRAPPERS)(_with_parts(function)))


_PARTS: Final[dict[Any, Any]] = {}


def _numba_object(part: Part | Kernel | Intrinsic) -> Any:
    """Return numba's object of a part, the same for each kernel; a kernel may be a part, too."""
    if part in _PARTS:
        return _PARTS[part]
    if isinstance(part, Intrinsic):
        made = INTRINSICS[part.name]
        _PARTS[part] = made(*part.types) if part.types else made
    else:
        _PARTS[part] = _new_part(part.function)
    return _PARTS[part]


@final
class ObjectLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """The LLVM IR of a kernel with its parts, from which an object file is made."""

    entry = ""

    def _optimize_final_module(self) -> None:
        """Keep nothing but the entry."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != self.entry:
                function.linkage = llvm.Linkage.internal
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Load nothing."""
        self._finalized = True

    def object_file(self, target: Target) -> bytes:
        """Return the machine code for a target.

        :raises RuntimeError: if it calls what a C library may not have.
        """
        module = self._final_module
        for each in module.functions:
            is_known = each.name.startswith("llvm.") or each.name in NEEDED
            if each.is_declaration and not is_known:
                raise RuntimeError(f"{self.entry} calls {each.name}")
        for each in module.global_variables:
            if not each.is_declaration:
                each.linkage = llvm.Linkage.internal
        return target.object_file(module)


@final
class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Compiles as numba does, but leaves the library open for an entry."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's passes."""
        state = self.state
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        state.library = ObjectLibrary(state.targetctx.codegen(), "kernel")
        return [DefaultPassBuilder.define_nopython_pipeline(state)]


def _add_entry(context: Any, module: Any, described: Any, kernel: Kernel) -> None:
    """Add a function that takes the address of words; the results replace the first ones."""
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD]), kernel.symbol)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    block = builder.inttoptr(entry.args[0], _WORD.as_pointer())
    words = _Words(context, builder, block)
    values = [words.take(kind) for kind in described.argtypes]
    status, value = _call(context, builder, module, described, values)
    with builder.if_then(status.is_error, likely=False):
        builder.ret(_WORD(1))
    kind = described.restype
    returned = list(kind) if isinstance(kind, types.BaseTuple) else []
    if len(returned) != kernel.results:
        raise TypeError(f"{kernel.symbol} returns {kind}, and not {kernel.results} integers")
    if returned:
        values = cgutils.unpack_tuple(builder, value, len(kind))
    elif kind != types.none:
        returned, values = [kind], [value]
    for place, each in enumerate(returned):
        word = _as_word(builder, each, values[place])
        builder.store(word, builder.gep(block, [_WORD(place)]))
    builder.ret(_WORD(0))


def _add_no_counts(module: Any) -> None:
    """Let nothing count references: arrays of arguments have no counts, and there are no others."""
    count = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    for name in ("NRT_incref", "NRT_decref"):
        function = ir.Function(module, count, name)
        ir.IRBuilder(function.append_basic_block("entry")).ret_void()


def _call(context: Any, builder: Any, module: Any, described: Any, values: Sequence[Any]) -> Any:
    convention = context.call_conv
    signature = convention.get_function_type(described.restype, described.argtypes)
    callee = ir.Function(module, signature, described.llvm_func_name)
    return convention.call_function(builder, callee, described.restype, described.argtypes, values)


def _as_word(builder: Any, kind: Any, value: Any) -> Any:
    if not isinstance(kind, (types.Integer, types.Boolean)):
        raise TypeError(f"a kernel cannot return {kind}")
    if value.type == _WORD:
        return value
    is_signed = isinstance(kind, types.Integer) and kind.signed
    return builder.sext(value, _WORD) if is_signed else builder.zext(value, _WORD)


@final
class _Words:
    """Makes the arguments of a kernel from their words, as ``words_of`` appends them."""

    def __init__(self, context: Any, builder: Any, words: Any) -> None:
        self._context = context
        self._builder = builder
        self._words = words
        self._next = 0

    def take(self, kind: Any) -> Any:
        """Return the next argument."""
        if isinstance(kind, types.BaseTuple):
            values = [self.take(each) for each in kind]
            return self._context.make_tuple(self._builder, kind, values)
        word = self._word()
        if isinstance(kind, types.Array):
            return self._array(kind, word)
        value_type = self._context.get_value_type(kind)
        return word if value_type == _WORD else self._builder.trunc(word, value_type)

    def _array(self, kind: Any, address: Any) -> Any:
        context, builder = self._context, self._builder
        array = context.make_array(kind)(context, builder)
        item = context.get_data_type(kind.dtype)
        size = context.get_abi_sizeof(item)
        shape = [self._word() for _ in range(kind.ndim)]
        strides = [_WORD(size)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        arrayobj.populate_array(
            array,
            data=builder.inttoptr(address, item.as_pointer()),
            shape=shape,
            strides=strides,
            itemsize=size,
            meminfo=None,
        )
        return array._getvalue()  # noqa: SLF001  # numba has no public name for it

    def _word(self) -> Any:
        word = self._builder.load(self._builder.gep(self._words, [_WORD(self._next)]))
        self._next += 1
        return word


def _with_parts(function: Any) -> Any:
    """Return a function whose globals have numba's objects for what it calls."""
    found = {
        name: _numba_object(each)
        for name, each in function.__globals__.items()
        if isinstance(each, (Part, Kernel, Intrinsic)) and name in function.__code__.co_names
    }
    copied = FunctionType(
        function.__code__,
        function.__globals__ | found,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copied.__qualname__ = function.__qualname__
    copied.__module__ = function.__module__
    return copied


def _for_kernels_only(callee: Any) -> Any:
    """Let numba keep results of compilations that Python cannot call."""
    callee.add_overload = partial(_add_overload, callee.overloads)
    return callee


def _add_overload(overloads: dict[Any, Any], result: Any) -> None:
    """Keep the result of a compilation, as numba's own method, but not for Python's calls."""
    overloads[tuple(result.signature.args)] = result
