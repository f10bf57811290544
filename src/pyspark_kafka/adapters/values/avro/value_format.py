"""Avro as a format of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....domain.errors import OptionsError
from ....domain.values.avro_resolution import resolve
from ....domain.values.avro_schema import parse_avro_schema
from ....domain.values.avro_types import AvroTypeOptions, struct_of
from ....domain.values.registry import Schema, SchemaType
from ....ports.values.value_format import ValueFormat
from ....ports.values.value_types import arrow_type
from ..columns.layout import columns_of
from .decode_program import DecodeProgram
from .decoder import AvroDecoder, parse_schema
from .encoder import AvroEncoder

if TYPE_CHECKING:
    from ....domain.values.avro_schema import AvroSchema
    from ....domain.values.data_types import StructType
    from ....domain.values.value_options import ValueOptions

READER_SCHEMA: Final = "avroschema"
STABLE_NAMES: Final = "enablestableidentifiersforuniontype"
STABLE_PREFIX: Final = "stableidentifierprefixforuniontype"
RECURSIVE_DEPTH: Final = "recursivefieldmaxdepth"
"""Spark's options (``AvroOptions``), in lower case."""

MAX_RECURSIVE_DEPTH: Final = 15
"""Spark's limit: ``RECURSIVE_FIELD_MAX_DEPTH_LIMIT``."""


def _data_type(options: ValueOptions, schema: Schema | None) -> StructType:
    try:
        return struct_of(_reader(options, schema), _type_options(options))
    except ValueError as error:
        raise _problem(options, error) from None


def _decoder(options: ValueOptions, schema: Schema | None, struct: StructType) -> AvroDecoder:
    try:
        reader, type_options = _reader(options, schema), _type_options(options)
        program = DecodeProgram(columns_of(arrow_type(struct)), len)
        found = resolve(reader, reader, struct, program, type_options)
        if not found:
            return AvroDecoder(_writer(options, schema), reader, struct, type_options)
    except ValueError as error:
        raise _problem(options, error) from None
    raise OptionsError(f"Column '{options.column}' of the query: {one}" for one in found)


def _reader(options: ValueOptions, schema: Schema | None) -> AvroSchema:
    """Return the reader's schema of values."""
    text = dict(options.settings).get(READER_SCHEMA)
    if text is None:
        return _writer(options, schema)
    try:
        return parse_avro_schema(text)
    except ValueError as error:
        raise OptionsError([f"Option 'avroSchema' is not an Avro schema: {error}"]) from None


def _writer(options: ValueOptions, schema: Schema | None) -> AvroSchema:
    """Return the schema of the options, or else of the registry."""
    if options.schema is not None:
        return parse_avro_schema(options.schema)
    if schema is None:
        raise ValueError("it is needed, or a schema registry that has the schema")
    return parse_schema(schema)


def _type_options(options: ValueOptions) -> AvroTypeOptions:
    settings = dict(options.settings)
    has_names = settings.get(STABLE_NAMES, "false").lower() == "true"
    prefix = settings.get(STABLE_PREFIX, "member_") if has_names else None
    return AvroTypeOptions(prefix, _recursive_depth(settings.get(RECURSIVE_DEPTH, "-1")))


def _recursive_depth(text: str) -> int:
    try:
        depth = int(text)
    except ValueError:
        depth = MAX_RECURSIVE_DEPTH + 1
    if depth > MAX_RECURSIVE_DEPTH:
        raise OptionsError(
            [f"recursiveFieldMaxDepth is '{text}', not a number up to {MAX_RECURSIVE_DEPTH}"]
        )
    return depth


def _problem(options: ValueOptions, error: ValueError) -> OptionsError:
    if isinstance(error, OptionsError):
        return error
    return OptionsError([f"Option '{options.column}Schema' is not a usable Avro schema: {error}"])


def _encoder(options: ValueOptions, schema: Schema | None, struct: StructType) -> AvroEncoder:
    if schema is None and options.schema is not None:
        schema = Schema(SchemaType.AVRO, options.schema)
    try:
        return AvroEncoder(options.column, schema, struct, _type_options(options))
    except ValueError as error:
        if isinstance(error, OptionsError):
            raise
        problem = f"Column '{options.column}' cannot be written with its Avro schema: {error}"
        raise OptionsError([problem]) from None


VALUE_FORMAT: Final = ValueFormat(_data_type, _decoder, _encoder)
