"""Descriptors of messages: from a ``FileDescriptorSet``, or from schemas of a registry.

A registry has a schema as a .proto text, or as the base64 of a ``FileDescriptorProto``, which is
what most of Confluent's clients register. Only texts are compiled.
"""

from __future__ import annotations

import re
from base64 import b64decode
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from ....domain.values.registry import is_descriptor
from .compiler import MAX_SET_BYTES, compile_texts
from .invalid_descriptor import InvalidDescriptorError
from .known_files import CONFLUENT_TEXTS, file_of_google, is_of_google
from .spark_types import is_map_entry, is_repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from google.protobuf.descriptor import Descriptor, FileDescriptor

    from ....domain.values.registry import Schema

_ENTRY: Final = [("key", 1), ("value", 2)]


@final
class Messages:
    """The messages of a ``FileDescriptorSet``.

    Files that it imports and lacks may only be Protobuf's own. ``first`` is the file of
    writers' messages.
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
        _check_maps(self._outermost())
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
        """Return the only message of descriptors.

        :raises InvalidDescriptorError: if they have none or several.
        """
        messages = list(self._outermost())
        if len(messages) != 1:
            raise InvalidDescriptorError(f"there are {len(messages)} messages, and none is named")
        return messages[0]

    def at(self, indexes: Sequence[int], name: str | None = None) -> Descriptor | None:
        """Return the message of a framing's message indexes, if there is one.

        Writers that have a descriptor count the entries of maps as messages, and those that have a
        text with ``map<…>`` do not. If the two ways lead to different messages, the result is the
        message with the full name ``name``, or else the one with entries counted.
        """
        counted = self._at(indexes, lambda _: True)
        other = self._at(indexes, lambda message: not is_map_entry(message))
        found = [one for one in (counted, other) if one is not None and not is_map_entry(one)]
        named = [one for one in found if one.full_name == name]
        return next(iter(named or found), None)

    def outermost(self, name: str) -> Descriptor | None:
        """Return an outermost message of the first file, by its name without the package."""
        messages: Iterable[Descriptor] = self._first.message_types_by_name.values()
        return next((one for one in messages if one.name == name), None)

    def _at(
        self, indexes: Sequence[int], counts: Callable[[Descriptor], bool]
    ) -> Descriptor | None:
        messages, found = list(self._first.message_types_by_name.values()), None
        for index in indexes or (0,):
            if not 0 <= index < len(messages):
                return None
            found = messages[index]
            messages = [each for each in found.nested_types if counts(each)]
        return found

    def _outermost(self) -> Iterator[Descriptor]:
        for file in self._files:
            yield from file.message_types_by_name.values()


def _check_maps(messages: Iterable[Descriptor]) -> None:
    """Check that a map is repeated, with a key and a value: ``DescriptorPool`` does not."""
    for message in messages:
        _check_maps(message.nested_types)
        is_map = is_map_entry(message)
        if is_map and [(one.name, one.number) for one in message.fields] != _ENTRY:
            raise InvalidDescriptorError(f"the map entry '{message.full_name}' is invalid")
        for field in message.fields:
            inner = field.message_type
            if inner is not None and is_map_entry(inner) and (is_map or not is_repeated(field)):
                raise InvalidDescriptorError(f"the map '{field.full_name}' is invalid")


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
    if not is_of_google(name):
        raise InvalidDescriptorError(
            f"the file '{name}' is missing; use protoc's option --include_imports"
        )
    return file_of_google(name)


MAX_TEXT_BYTES: Final = 4 * 2**20
"""The bytes of a schema's text with all that it imports."""

MAX_IMPORTS: Final = 1_000
MAX_NAME: Final = 255

_NAME: Final = re.compile(r"[A-Za-z0-9_.\-]+(/[A-Za-z0-9_.\-]+)*")
_IMPORT: Final = re.compile(r"""["']([a-z/_]+\.proto)["']""")


@lru_cache(maxsize=64)
def compiled_messages(schema: Schema) -> Messages:
    """Return the messages of a registered schema, whose imports are resolved.

    :raises InvalidDescriptorError: if it is invalid, too large or too slow to compile.
    :raises MissingDependencyError: if a package that it needs is not installed.
    :raises OptionsError: if this machine does not compile it in time.
    """
    contents = {one.name: one.serialized or one.text for one in schema.imports}
    name = _free_name({*contents, *CONFLUENT_TEXTS})
    contents[name] = schema.serialized or schema.text
    _check(contents)
    descriptors = {
        path: _parsed_file(path, text) for path, text in contents.items() if is_descriptor(text)
    }
    texts = {path: text for path, text in contents.items() if path not in descriptors}
    files = {one.name: one for one in _compiled(texts, name, descriptors)} | descriptors
    return Messages(FileDescriptorSet(file=files.values()).SerializeToString(), name)


def _free_name(names: set[str]) -> str:
    name = "schema.proto"
    while name in names:
        name = f"_{name}"
    return name


def _check(contents: Mapping[str, str]) -> None:
    if len(contents) > MAX_IMPORTS + 1:
        raise InvalidDescriptorError(f"it imports more than {MAX_IMPORTS} schemas")
    try:
        size = sum(len(text.encode()) for text in contents.values())
    except UnicodeEncodeError as error:  # a lone surrogate, which JSON can have
        raise InvalidDescriptorError("its text is not Unicode") from error
    if size > MAX_TEXT_BYTES:
        raise InvalidDescriptorError(f"its text has more than {MAX_TEXT_BYTES} bytes")
    for name in contents:
        parts = name.split("/")
        if len(name) > MAX_NAME or not _NAME.fullmatch(name) or {".", ".."} & {*parts}:
            raise InvalidDescriptorError(f"the import '{name[:MAX_NAME]}' is not a file name")


def _parsed_file(name: str, text: str) -> FileDescriptorProto:
    """Return a file under the name by which others import it."""
    proto = FileDescriptorProto()
    try:
        proto.ParseFromString(b64decode(text, validate=True))
    except (ValueError, DecodeError):
        raise InvalidDescriptorError(
            f"the file '{name}' is neither a .proto text nor a descriptor in base64"
        ) from None
    proto.name = name
    return proto


def _compiled(
    texts: Mapping[str, str], name: str, descriptors: Mapping[str, FileDescriptorProto]
) -> Iterable[FileDescriptorProto]:
    """Return the files of texts, compiled if the schema has or needs any."""
    imported = {each for proto in descriptors.values() for each in proto.dependency}
    needed = [each for each in (*texts, *CONFLUENT_TEXTS) if each in texts or each in imported]
    if not needed:
        return ()
    sources = {**CONFLUENT_TEXTS, **texts}
    is_text = name in texts
    if not is_text:
        lines = [f'import "{each}";' for each in needed]
        sources[name] = "\n".join(['syntax = "proto3";', *lines])
    google = {each for text in texts.values() for each in _IMPORT.findall(text)} | imported
    known = [file_of_google(each) for each in sorted(google) if is_of_google(each)]
    others = [one for path, one in descriptors.items() if path != name]
    found = compile_texts(sources, name, [*others, *known])
    return found if is_text else [one for one in found if one.name != name]
