"""The processors and systems that a library is built for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import llvmlite.binding as llvm

from pyspark_kafka.adapters.kernels.library import this_platform

if TYPE_CHECKING:
    from collections.abc import Mapping


@final
@dataclass(frozen=True, slots=True)
class Target:
    """An operating system and an architecture.

    ``triple`` is LLVM's, ``zig`` that of ``zig cc`` if it links, ``cpu`` the oldest processor of
    the architecture on which the library runs, ``suffix`` that of its file.
    """

    platform: str
    triple: str
    zig: str
    cpu: str
    suffix: str

    def object_file(self, module: Any) -> bytes:
        """Return the machine code of a module of LLVM's IR."""
        for option in ALIGNED:
            llvm.set_option("", option)
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        machine = llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, opt=3, reloc="pic", codemodel="default"
        )
        if module.triple != self.triple:
            module = llvm.parse_bitcode(module.as_bitcode())
            module.triple, module.data_layout = self.triple, str(machine.target_data)
        code: bytes = machine.emit_object(module)
        return code


X86: Final = "x86-64-v2"
"""With x86-64-v3 the decoder of JSON is 5 % faster, those of Protobuf and Avro 3 and 7 % slower."""
ARM: Final = "generic"

ALIGNED: Final = ("--align-all-functions=6", "--align-all-nofallthru-blocks=6")
"""LLVM's options for functions, and for blocks that only jumps reach: at 64 B, a line of the cache.

Without them the decoders of values change by 8 %, either way, whenever code before them changes.
"""

TARGETS: Final[Mapping[str, Target]] = {
    target.platform: target
    for target in (
        Target("linux-x86_64", "x86_64-unknown-linux-gnu", "", X86, ".so"),
        Target("linux-aarch64", "aarch64-unknown-linux-gnu", "", ARM, ".so"),
        Target("macos-x86_64", "x86_64-apple-macosx11.0.0", "x86_64-macos.11.0", X86, ".dylib"),
        Target(
            "macos-aarch64", "arm64-apple-macosx11.0.0", "aarch64-macos.11.0", "apple-m1", ".dylib"
        ),
        Target("windows-x86_64", "x86_64-pc-windows-gnu", "x86_64-windows-gnu", X86, ".dll"),
    )
}


def here() -> Target:
    """Return the target of this machine."""
    return TARGETS[this_platform()]
