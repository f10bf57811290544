"""The schemas that Confluent's serializers take for known and do not register as references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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
