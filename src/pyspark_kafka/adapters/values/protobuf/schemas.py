"""Descriptors of messages: from a ``FileDescriptorSet``, or compiled from .proto texts.

The texts are not trusted. ``protoc`` runs in a process of its own, bounded in memory, time and
output, and sees a temporary folder that has nothing but the texts. Their names are checked:
``protoc`` itself refuses imports with ``..`` and absolute ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from ....domain.errors import MissingDependencyError, OptionsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from google.protobuf.descriptor import Descriptor, FileDescriptor

    from ....domain.values.registry import Schema

MAX_SET_BYTES: Final = 16 * 2**20
"""The largest ``FileDescriptorSet`` that is parsed."""

_WELL_KNOWN: Final = re.compile(
    r"google/protobuf/(any|api|descriptor|duration|empty|field_mask|source_context|struct"
    r"|timestamp|type|wrappers)\.proto"
)


class InvalidDescriptorError(ValueError):
    """Descriptors are broken, incomplete, or do not have a message; says so to the user."""


@final
class Messages:
    """The messages of a ``FileDescriptorSet``.

    Files that it imports and lacks may only be Protobuf's own. ``first`` is the file of message
    indexes.
    """

    def __init__(self, serialized: bytes, first: str | None = None) -> None:
        """Parse and check the descriptors.

        :raises InvalidDescriptorError: if they are invalid.
        """
        protos = _parsed(serialized)
        pool = DescriptorPool()
        for proto in _in_order(protos):
            try:
                pool.Add(proto)
            except TypeError as error:
                raise InvalidDescriptorError(f"the file '{proto.name}' is invalid") from error
        self._pool = pool
        self._files: Sequence[FileDescriptor] = [pool.FindFileByName(name) for name in protos]
        self._first = self._files[0] if first is None else pool.FindFileByName(first)

    def named(self, name: str) -> Descriptor:
        """Return a message by its full name, or a message of a file by its name alone.

        :raises InvalidDescriptorError: if there is none.
        """
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            # As buildDescriptor of Spark's ProtobufUtils, which knows no nested messages.
            for message in self._outermost():
                if message.name == name:
                    return message
        known = ", ".join(f"'{message.full_name}'" for message in self._outermost())
        raise InvalidDescriptorError(f"there is no message '{name}'; there are {known[:500]}")

    def only(self) -> Descriptor:
        """Return the message of descriptors that have one.

        :raises InvalidDescriptorError: if they have others.
        """
        messages = list(self._outermost())
        if len(messages) != 1:
            raise InvalidDescriptorError(f"there are {len(messages)} messages, and none is named")
        return messages[0]

    def at(self, indexes: Sequence[int]) -> Descriptor | None:
        """Return the message of a framing's message indexes, if there is one."""
        messages, found = list(self._first.message_types_by_name.values()), None
        for index in indexes or (0,):
            if not 0 <= index < len(messages):
                return None
            found = messages[index]
            messages = list(found.nested_types)
        return found

    def _outermost(self) -> Iterator[Descriptor]:
        for file in self._files:
            yield from file.message_types_by_name.values()


def _parsed(serialized: bytes) -> Mapping[str, FileDescriptorProto]:
    if len(serialized) > MAX_SET_BYTES:
        raise InvalidDescriptorError(f"it has more than {MAX_SET_BYTES} bytes")
    try:
        files = FileDescriptorSet.FromString(serialized).file
    except DecodeError as error:
        raise InvalidDescriptorError("it is not a FileDescriptorSet") from error
    if not files:
        raise InvalidDescriptorError("it has no files")
    return {proto.name: proto for proto in files}


def _in_order(protos: Mapping[str, FileDescriptorProto]) -> Iterator[FileDescriptorProto]:
    """Yield each file after the files that it imports."""
    begun: set[str] = set()
    done: set[str] = set()
    waiting = [*protos][::-1]
    while waiting:
        name = waiting[-1]
        proto = protos.get(name) or _well_known(name)
        missing = [needed for needed in proto.dependency if needed not in done]
        if name in done or not missing:
            waiting.pop()
            if name not in done:
                done.add(name)
                yield proto
        elif name in begun:
            raise InvalidDescriptorError(f"the file '{name}' imports itself")
        else:
            begun.add(name)
            waiting += missing


def _well_known(name: str) -> FileDescriptorProto:
    if not _WELL_KNOWN.fullmatch(name):
        raise InvalidDescriptorError(
            f"the file '{name}' is missing; use protoc's option --include_imports"
        )
    module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    proto = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return proto


_KINDS: Final = {
    "file_meta": "FileOptions",
    "message_meta": "MessageOptions",
    "field_meta": "FieldOptions",
    "enum_meta": "EnumOptions",
    "enum_value_meta": "EnumValueOptions",
}
_EXTENSIONS: Final = "\n".join(
    f"extend google.protobuf.{kind} {{ Meta {name} = 1088; }}" for name, kind in _KINDS.items()
)
_META: Final = f"""
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {{
  string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4;
}}
message Rule {{ string name = 1; string doc = 2; string expr = 3; string sql = 4; }}
{_EXTENSIONS}
"""
_DECIMAL: Final = """
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""

CONFLUENT_PROTOS: Final[Mapping[str, str]] = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
}
"""Their texts, by the names that are imported. Numbers are Confluent's."""


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
