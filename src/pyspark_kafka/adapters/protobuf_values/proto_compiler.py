"""Compiling the .proto texts that schema registries have.

They are not trusted. ``protoc`` runs in a process of its own, bounded in memory, time and output,
and sees a temporary folder that has nothing but the texts. Their names are checked: ``protoc``
itself refuses imports with ``..`` and absolute ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...domain.errors import MissingDependencyError, OptionsError
from .confluent_protos import CONFLUENT_PROTOS
from .descriptors import MAX_SET_BYTES, InvalidDescriptorError, Messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.values.registry import Schema

MAX_TEXT_BYTES: Final = 4 * 2**20
"""The bytes of a schema's text with all that it imports."""

MAX_IMPORTS: Final = 1_000
MAX_NAME: Final = 255
CPU_S: Final = 10
WAIT_S: Final = 120
"""How long to wait for a compilation on a busy machine, in seconds."""

_MEMORY_BYTES: Final = 2 * 2**30
_NAME: Final = re.compile(r"[A-Za-z0-9_.\-]+(/[A-Za-z0-9_.\-]+)*")
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


@lru_cache(maxsize=64)
def compiled_messages(schema: Schema) -> Messages:
    """Return the messages of a registered schema, whose imports are resolved.

    :raises InvalidDescriptorError: if its text is invalid, too large or too slow to compile.
    :raises MissingDependencyError: if grpcio-tools is not installed.
    :raises OptionsError: if this machine does not compile it in time.
    """
    texts = {**CONFLUENT_PROTOS, **{one.name: one.text for one in schema.imports}}
    name = _free_name(texts)
    texts[name] = schema.text
    contents = _checked(texts)
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-proto-") as folder:
        for path, content in contents.items():
            place = Path(folder, "texts", path)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            except OSError as error:  # a file and a folder of one name
                raise InvalidDescriptorError(f"the import '{path}' cannot be used") from error
        return Messages(_compile(Path(folder), name), name)


def _free_name(texts: Mapping[str, str]) -> str:
    name = "schema.proto"
    while name in texts:
        name = f"_{name}"
    return name


def _checked(texts: Mapping[str, str]) -> Mapping[str, bytes]:
    """Return the contents of files by their names."""
    if len(texts) > MAX_IMPORTS + len(CONFLUENT_PROTOS) + 1:
        raise InvalidDescriptorError(f"it imports more than {MAX_IMPORTS} schemas")
    try:
        contents = {name: text.encode() for name, text in texts.items()}
    except UnicodeEncodeError as error:  # a lone surrogate, which JSON can have
        raise InvalidDescriptorError("its text is not Unicode") from error
    if sum(map(len, contents.values())) > MAX_TEXT_BYTES:
        raise InvalidDescriptorError(f"its text has more than {MAX_TEXT_BYTES} bytes")
    for name in texts:
        parts = name.split("/")
        if len(name) > MAX_NAME or not _NAME.fullmatch(name) or {".", ".."} & {*parts}:
            raise InvalidDescriptorError(f"the import '{name[:MAX_NAME]}' is not a file name")
    return contents


def _compile(folder: Path, name: str) -> bytes:
    tools = find_spec("grpc_tools")
    if tools is None or not tools.submodule_search_locations:
        raise MissingDependencyError("grpcio-tools", "protobuf")
    package = Path(tools.submodule_search_locations[0])
    target = folder / "descriptors"
    includes = [f"-I{folder / 'texts'}", f"-I{package / '_proto'}"]
    output = [f"--descriptor_set_out={target}", "--include_imports"]
    _run([sys.executable, "-I", "-c", _PROTOC, str(package.parent), *includes, *output, name])
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
    """Return what ``protoc`` says, without its log and its paths."""
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    errors = [_PATH.sub("", line) for line in lines if not _LOG.match(line)]
    return "; ".join(errors)[:_MAX_REASON]
