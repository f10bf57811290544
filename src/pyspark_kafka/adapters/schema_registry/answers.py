"""What a schema registry answers, checked: it may be another server, or a hostile one."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from ...domain.options.option import INT32_MAX
from ...domain.values.registry import Schema, SchemaReference, SchemaType, SubjectVersion

if TYPE_CHECKING:
    from collections.abc import Mapping

Fields: TypeAlias = "Mapping[str, Any]"

MAX_REFERENCES: Final = 1_000


class NonsenseError(Exception):
    """An answer is not one of a schema registry; the message says why."""


def json_object(content: bytes) -> Fields:
    """Return the fields of a JSON object.

    :raises NonsenseError: if it is none.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise NonsenseError("its answer is not JSON") from None
    return _object(found, "its answer")


def error_of(content: bytes) -> tuple[int, str]:
    """Return the error code and the message of a refusal; 0 and nothing if it has no code.

    The message is shown: one of another server may be secret.
    """
    try:
        fields = json_object(content)
    except NonsenseError:
        return 0, ""
    code, message = fields.get("error_code"), fields.get("message")
    if type(code) is not int:
        return 0, ""
    return code, message if isinstance(message, str) else ""


def registered_id(fields: Fields) -> int:
    """Return the id of a schema that was registered."""
    return _number(fields, "id", 0)


def schema(fields: Fields) -> Schema:
    """Return a schema."""
    name = fields.get("schemaType", SchemaType.AVRO.value)
    try:
        kind = SchemaType(name)
    except ValueError:
        known = ", ".join(each.value for each in SchemaType)
        _refuse(f"the 'schemaType' of its answer is none of {known}")
    return Schema(kind, _text(fields, "schema"), _references(fields.get("references")))


def subject_version(fields: Fields) -> SubjectVersion:
    """Return a version of a subject."""
    version, schema_id = _number(fields, "version", 1), _number(fields, "id", 0)
    return SubjectVersion(
        _text(fields, "subject"), version, schema_id, schema(fields), _guid(fields.get("guid"))
    )


def _guid(found: object) -> str | None:
    if found is None:
        return None
    try:
        return str(uuid.UUID(str(found)))
    except ValueError:
        _refuse("its answer has no GUID for 'guid'")


def _references(found: object) -> tuple[SchemaReference, ...]:
    if found is None:
        return ()
    if not isinstance(found, list) or len(found) > MAX_REFERENCES:
        _refuse(f"the 'references' of its answer are no list of at most {MAX_REFERENCES}")
    return tuple(_reference(_object(each, "a reference in its answer")) for each in found)


def _reference(fields: Fields) -> SchemaReference:
    version = _number(fields, "version", 1)
    return SchemaReference(_text(fields, "name"), _text(fields, "subject"), version)


def _object(found: object, what: str) -> Fields:
    if not isinstance(found, dict):
        _refuse(f"{what} is no JSON object")
    return found


def _text(fields: Fields, name: str) -> str:
    found = fields.get(name)
    # JSON can express halves of characters, which no other text can have.
    if not isinstance(found, str) or any("\ud800" <= each <= "\udfff" for each in found):
        _refuse(f"its answer has no text for '{name}'")
    return found


def _number(fields: Fields, name: str, minimum: int) -> int:
    found = fields.get(name)
    if type(found) is not int or not minimum <= found <= INT32_MAX:
        _refuse(f"its answer has no number from {minimum} to {INT32_MAX} for '{name}'")
    return found


def _refuse(reason: str) -> NoReturn:
    raise NonsenseError(reason)
