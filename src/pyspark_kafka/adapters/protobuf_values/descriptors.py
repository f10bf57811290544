"""Descriptors of messages, from a ``FileDescriptorSet``."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Final, final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from google.protobuf.descriptor import Descriptor, FileDescriptor

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
