"""Protobuf files that schemas import without a reference to them.

Confluent's serializers register no references to these (``KNOWN_DEPENDENCIES`` of its
``ProtobufSchema``).
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ....domain.errors import requires_extra

if TYPE_CHECKING:
    from collections.abc import Mapping

_GOOGLE: Final = re.compile(
    r"google/protobuf/(any|api|descriptor|duration|empty|field_mask|source_context|struct"
    r"|timestamp|type|wrappers)\.proto"
    r"|google/type/(calendar_period|color|date|datetime|dayofweek|decimal|expr|fraction|interval"
    r"|latlng|localized_text|money|month|phone_number|postal_address|quaternion|timeofday)\.proto"
)

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
_VARIANT: Final = """
syntax = "proto3";
package confluent.type;
message Variant { bytes metadata = 1; bytes value = 2; }
"""
_OLD_DECIMAL: Final = 'syntax = "proto3"; import public "confluent/type/decimal.proto";'

CONFLUENT_TEXTS: Final[Mapping[str, str]] = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": _VARIANT,
    # Where Confluent's clients for Go, JavaScript and Python had it first.
    "confluent/types/decimal.proto": _OLD_DECIMAL,
}
"""Their texts, by the names that are imported. Numbers are Confluent's."""


def is_known(name: str) -> bool:
    """Return whether a file may be imported without a reference to it."""
    return name in CONFLUENT_TEXTS or is_of_google(name)


def is_of_google(name: str) -> bool:
    """Return whether a file is one of Protobuf's own, or of Google's common types."""
    return _GOOGLE.fullmatch(name) is not None


def file_of_google(name: str) -> FileDescriptorProto:
    """Return a file for which ``is_of_google`` holds.

    :raises MissingDependencyError: if googleapis-common-protos is not installed.
    """
    with requires_extra("protobuf", "google", "The package googleapis-common-protos"):
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    proto = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return proto
