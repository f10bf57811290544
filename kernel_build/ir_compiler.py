"""Compiling functions that are parts of kernels: to LLVM IR only.

Numba optimizes each function together with the functions that it calls, and emits machine code for
all of them: so LLVM compiles a function once for each function above it. Here a function stays IR
until its kernel is compiled.
"""

from __future__ import annotations

from typing import Any, Final, final

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    InlineInlinables,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)


@final
class IrLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """The LLVM IR of one function, without that of its callees."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the kernel's library."""
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001

    def finalize(self) -> None:
        """Emit no machine code."""
        self._finalized = True

    def with_callees(self) -> list[Any]:
        """Return this library and those of all functions that it calls."""
        return list(dict.fromkeys((self, *self._linking_libraries)))


@final
@register_pass(mutates_CFG=True, analysis_only=False)
class LowerToIr(NativeLowering):  # type: ignore[misc]
    """Lower a function to LLVM IR, and let numba know it."""

    _name = "lower_to_ir"

    def run_pass(self, state: Any) -> bool:
        """Return that the function has changed."""
        library = IrLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library = library
        super().run_pass(state)
        lowered = state["cr"]
        callee = object()  # what numba knows the function by
        library.finalize()
        state.targetctx.insert_user_function(callee, lowered.fndesc, library.with_callees())
        state["cr"] = lowered._replace(cfunc=callee)
        return True


_PASSES: Final = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    GenericRewrites,
    InlineInlinables,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    LowerToIr,
    NoPythonBackend,
)
"""Those of ``DefaultPassBuilder`` but for closures, array expressions, and inspection."""


@final
class IrCompiler(CompilerBase):  # type: ignore[misc]
    """The compiler of functions that only kernels call."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes up to LLVM's IR."""
        flags = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        passes = PassManager("ir")
        for step in _PASSES:
            passes.add_pass(step, step.name())
        passes.finalize()
        return [passes]
