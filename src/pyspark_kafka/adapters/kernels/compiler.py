"""The compiler of kernels: numba's, up to an object file."""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, final

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.np import arrayobj

from .callee import Callee
from .ir_compiler import IrCompiler
from .machine_code import Result, pack, target_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NO_WRAPPERS: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_WORD: Final = ir.IntType(64)
_WORD_BYTES: Final = 8

_HEAD_BYTES: Final = object.__basicsize__
_DATA: Final = _HEAD_BYTES
_SHAPE: Final = _HEAD_BYTES + 2 * _WORD_BYTES
_STRIDES: Final = _HEAD_BYTES + 3 * _WORD_BYTES
"""Where numpy's ``PyArrayObject_fields`` has its pointers; extensions depend on it, too."""

ENTRY: Final = "pyspark_kafka_entry"


def compile_kernel(function: Callable[..., object], arguments: Sequence[object]) -> bytes:
    """Return a kernel's packed object file, for the types of these arguments."""
    return _compile(function, tuple(map(numba.typeof, arguments)), _add_entry)


def compile_part(function: Callable[..., object], words: int) -> bytes:
    """Return the packed object file of a function that takes 64-bit numbers, and returns one."""
    return _compile(function, (types.int64,) * words, _add_part_entry)


def new_intrinsic(function: Callable[..., object]) -> Any:
    """Return numba's object of an intrinsic."""
    return extending.intrinsic(function)


def new_inlined(function: Callable[..., object]) -> Any:
    """Return numba's object of a function that kernels call."""
    return _for_kernels_only(
        numba.njit(error_model="numpy", **_NO_WRAPPERS)(_with_callees(function))
    )


def new_force_inlined(function: Callable[..., object]) -> Any:
    """Return numba's object of a function that is copied into its callers."""
    return numba.njit(inline="always", error_model="numpy")(_with_callees(function))


def new_kernel_function(function: Callable[..., object]) -> Any:
    """Return numba's object of a function that is compiled with its kernel."""
    jit = numba.njit(error_model="numpy", pipeline_class=IrCompiler, **_NO_WRAPPERS)
    callee: Any = _for_kernels_only(jit(_with_callees(function)))
    template = callee.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        """Compile no copies for constants."""
        variables = {name: types.unliteral(each) for name, each in named.items()}
        return template(tuple(types.unliteral(each) for each in arguments), variables)

    callee.get_call_template = get_call_template
    return callee


@final
class ObjectLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """The LLVM IR of a kernel with its callees, of which an object file is made."""

    def _optimize_final_module(self) -> None:
        """Keep nothing but the entry."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != ENTRY:
                function.linkage = llvm.Linkage.internal
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Load nothing."""
        self._finalized = True

    def object_file(self) -> bytes:
        """Return the machine code.

        :raises RuntimeError: if it calls what this process cannot resolve.
        """
        for function in self._final_module.functions:
            if function.is_declaration and not function.name.startswith("llvm."):
                _check_symbol(function.name)
        code: bytes = target_machine().emit_object(self._final_module)
        return code


@final
class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Compiles as numba does, but leaves the library open for an entry."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        state.library = ObjectLibrary(state.targetctx.codegen(), "kernel")
        return [DefaultPassBuilder.define_nopython_pipeline(state)]


def _compile(
    function: Callable[..., object],
    arguments: tuple[Any, ...],
    add_entry: Callable[[Any, Any, Any], Result],
) -> bytes:
    with global_compiler_lock:
        jit = numba.njit(nogil=True, error_model="numpy", pipeline_class=KernelCompiler)
        dispatcher = _for_kernels_only(jit(_with_callees(function)))
        dispatcher.compile(arguments)
        result = dispatcher.overloads[arguments]
        module = result.target_context.create_module("entry")
        returned = add_entry(result.target_context, module, result.fndesc)
        _add_no_counts(module)
        result.library.add_ir_module(module)
        result.library.finalize()
        return pack(ENTRY, returned, result.library.object_file())


def _add_entry(context: Any, module: Any, described: Any) -> Result:
    """Add a function that takes the address of words; the result replaces the first ones."""
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    words = _Words(context, builder, entry.args[0])
    values = [words.take(kind) for kind in described.argtypes]
    status, value = _call(context, builder, module, described, values)
    with builder.if_then(status.is_error, likely=False):
        builder.ret(_WORD(1))
    kind = described.restype
    if kind == types.none:
        values, kinds = [], []
    elif isinstance(kind, types.BaseTuple):
        values, kinds = cgutils.unpack_tuple(builder, value, len(kind)), list(kind)
    else:
        values, kinds = [value], [kind]
    for place, (each, kind_of_each) in enumerate(zip(values, kinds, strict=True)):
        word = _as_word(builder, kind_of_each, each)
        builder.store(word, builder.gep(entry.args[0], [_WORD(place)]))
    builder.ret(_WORD(0))
    return Result(tuple(map(str, kinds)), is_tuple=isinstance(kind, types.BaseTuple))


def _add_part_entry(context: Any, module: Any, described: Any) -> Result:
    """Add a function that takes numbers and returns one."""
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD] * len(described.argtypes)), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    _, value = _call(context, builder, module, described, entry.args)
    builder.ret(_as_word(builder, described.restype, value))
    return Result((str(described.restype),))


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
        word = self._builder.load(self._builder.gep(self._words, [_WORD(self._next)]))
        self._next += 1
        if isinstance(kind, types.Array):
            return self._array(kind, word)
        value_type = self._context.get_value_type(kind)
        return word if value_type == _WORD else self._builder.trunc(word, value_type)

    def _array(self, kind: Any, address: Any) -> Any:
        context, builder = self._context, self._builder
        array = context.make_array(kind)(context, builder)
        item = context.get_data_type(kind.dtype)
        arrayobj.populate_array(
            array,
            data=builder.inttoptr(self._field(address, _DATA), item.as_pointer()),
            shape=self._numbers(address, _SHAPE, kind.ndim),
            strides=self._numbers(address, _STRIDES, kind.ndim),
            itemsize=context.get_abi_sizeof(item),
            meminfo=None,
        )
        return array._getvalue()  # noqa: SLF001  # numba has no public name for it

    def _numbers(self, address: Any, field: int, count: int) -> list[Any]:
        first = self._field(address, field)
        return [self._field(first, place * _WORD_BYTES) for place in range(count)]

    def _field(self, address: Any, offset: int) -> Any:
        place = self._builder.add(address, _WORD(offset))
        return self._builder.load(self._builder.inttoptr(place, _WORD.as_pointer()))


def _check_symbol(name: str) -> None:
    if name.startswith(("NRT_", "numba_")) or not llvm.address_of_symbol(name):
        raise RuntimeError(f"a kernel calls {name}, which only numba has")


def _with_callees(function: Any) -> Any:
    """Return a function whose globals have numba's objects for what it calls."""
    found = {
        name: each.for_numba
        for name, each in function.__globals__.items()
        if isinstance(each, Callee) and name in function.__code__.co_names
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
