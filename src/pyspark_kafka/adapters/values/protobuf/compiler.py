"""Compiling .proto texts with ``protoc``.

The texts are not trusted. ``protoc`` runs in a separate process, bounded in memory, time and
output, and sees a temporary folder that has nothing but the texts, and descriptors that they
import. Names of texts are checked: ``protoc`` itself refuses imports with ``..`` and absolute ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from ....domain.errors import MissingDependencyError, OptionsError
from .invalid_descriptor import InvalidDescriptorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

MAX_SET_BYTES: Final = 16 * 2**20
"""The largest ``FileDescriptorSet`` that is parsed."""

CPU_S: Final = 10
WAIT_S: Final = 120
"""How long to wait for a compilation on a busy machine, in seconds."""

_MEMORY_BYTES: Final = 2 * 2**30
_MAX_REASON: Final = 500
_KILLED: Final = -9  # by SIGKILL, which Windows does not have
_LOG: Final = re.compile(r"WARNING: All log messages|[IWEF]\d{4} ")
_PATH: Final = re.compile(r"\S*/pyspark-kafka-proto-\w+/texts/")
_PROTOC: Final = f"""
import sys
sys.path.append(sys.argv.pop(1))
try:
    import resource
except ImportError:
    pass
else:
    resource.setrlimit(resource.RLIMIT_CPU, ({CPU_S}, {CPU_S}))
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES}, {_MEMORY_BYTES}))
    resource.setrlimit(resource.RLIMIT_FSIZE, ({MAX_SET_BYTES}, {MAX_SET_BYTES}))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from grpc_tools import protoc
sys.exit(protoc.main(sys.argv))
"""

_MAP_ENTRY_NUMBER: Final = 2**29 - 1
"""The largest field number, reserved in messages that are to become entries of a map."""

# Unterminated texts and comments match too: it must not take long to find none.
_TOKENS: Final = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?"""
    r"|(?P<entry>\boption\s+map_entry\s*=\s*true\s*;)",
    re.DOTALL,
)


def compile_texts(
    texts: Mapping[str, str], name: str, descriptors: Sequence[FileDescriptorProto]
) -> list[FileDescriptorProto]:
    """Return the file of a text, and the files that it imports.

    :raises InvalidDescriptorError: if a text is invalid or too slow to compile.
    :raises MissingDependencyError: if grpcio-tools is not installed.
    :raises OptionsError: if this machine does not compile it in time.
    """
    rewritten = {path: _without_map_entries(text) for path, text in texts.items()}
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-proto-") as directory:
        folder = Path(directory)
        for path, text in rewritten.items():
            place = folder / "texts" / path
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8", newline="")
            except OSError as error:  # a file and a folder of one name
                raise InvalidDescriptorError(f"the import '{path}' cannot be used") from error
        given = folder / "imported"
        given.write_bytes(FileDescriptorSet(file=descriptors).SerializeToString())
        compiled = FileDescriptorSet.FromString(_compile(folder, given, name)).file
    for file in compiled:
        if rewritten.get(file.name) != texts.get(file.name):
            _restore_map_entries(file.message_type)
    return list(compiled)


def _without_map_entries(text: str) -> str:
    """Return a text that ``protoc`` compiles, with a mark in each message of ``map_entry``.

    Registries before Confluent Platform 7.8 have such texts for schemas that were registered as
    descriptors: a message with ``option map_entry = true``, which only descriptors may have.
    """
    mark = f"reserved {_MAP_ENTRY_NUMBER};"
    return _TOKENS.sub(lambda found: mark if found["entry"] else found[0], text)


def _restore_map_entries(messages: Iterable[DescriptorProto]) -> None:
    for message in messages:
        _restore_map_entries(message.nested_type)
        kept = [one for one in message.reserved_range if one.start != _MAP_ENTRY_NUMBER]
        if len(kept) != len(message.reserved_range):
            message.options.map_entry = True
            del message.reserved_range[:]
            message.reserved_range.extend(kept)


def _compile(folder: Path, given: Path, name: str) -> bytes:
    tools = find_spec("grpc_tools")
    if tools is None or not tools.submodule_search_locations:
        raise MissingDependencyError("grpcio-tools", "protobuf")
    package = Path(tools.submodule_search_locations[0])
    target = folder / "descriptors"
    includes = [f"-I{folder / 'texts'}", f"-I{package / '_proto'}"]
    # Imports that the texts lack are searched in the descriptors.
    files = [f"--descriptor_set_in={given}", f"--descriptor_set_out={target}", "--include_imports"]
    _run([sys.executable, "-I", "-c", _PROTOC, str(package.parent), *includes, *files, name])
    return target.read_bytes()


def _run(command: list[str]) -> None:
    try:
        # The arguments are paths of ours: a text's name is not among them.
        done = subprocess.run(  # noqa: S603
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise OptionsError([f"A Protobuf schema was not compiled in {WAIT_S} s."]) from None
    if done.returncode == _KILLED:
        # Out of memory: the machine's fault, not the schema's.
        raise OptionsError(["The compiler of a Protobuf schema was killed."])
    if done.returncode:
        raise InvalidDescriptorError(_reason(done) or f"protoc ended with {done.returncode}")


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the error of ``protoc``, without its log and its paths."""
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    errors = [_PATH.sub("", line) for line in lines if not _LOG.match(line)]
    return "; ".join(errors)[:_MAX_REASON]
