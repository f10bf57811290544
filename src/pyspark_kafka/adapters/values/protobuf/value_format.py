"""Protobuf as a format of values."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ....domain.errors import OptionsError, requires_extra
from ....domain.values.registry import SchemaType
from ....domain.values.typed_schema import text_schema
from ....ports.values.value_format import ValueFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import Descriptor

    from ....domain.values.data_types import StructType
    from ....domain.values.registry import Schema
    from ....domain.values.value_options import ValueOptions
    from ....ports.values.value_format import ValueDecoder, ValueEncoder
    from .schemas import Messages


@contextmanager
def _usable(options: ValueOptions) -> Iterator[None]:
    """Raise an error for the user if the package is missing or the schema cannot be used."""
    with requires_extra("protobuf", "google", "The package protobuf"):
        from .invalid_descriptor import InvalidDescriptorError

        try:
            yield
        except InvalidDescriptorError as error:
            problem = (
                f"The Protobuf schema of the {options.column} cannot be used: {error}. Check the "
                f"options '{options.column}Schema' and '{options.column}Message'."
            )
            raise OptionsError([problem]) from None


def _data_type(options: ValueOptions, schema: Schema | None) -> StructType:
    with _usable(options):
        from .spark_types import message_type, protobuf_settings

        settings = protobuf_settings(options)
        return message_type(_message(options, schema), settings)


def _decoder(options: ValueOptions, schema: Schema | None, wanted: StructType) -> ValueDecoder:
    with _usable(options):
        from .decoder import ProtobufDecoder
        from .spark_types import protobuf_settings

        settings = protobuf_settings(options)
        return ProtobufDecoder(_message(options, schema), wanted, settings)


def _message(options: ValueOptions, schema: Schema | None) -> Descriptor:
    from .schemas import Messages, compiled_messages

    if options.descriptor is not None:
        messages = Messages(options.descriptor)
        return messages.only() if options.message is None else messages.named(options.message)
    if schema is None:
        problem = (
            f"A schema for the Protobuf {options.column} is needed: set the option "
            f"'{options.column}Schema' to a file that protoc wrote with --descriptor_set_out and "
            "--include_imports, or set 'schema.registry.url'."
        )
        raise OptionsError([problem])
    if schema.type is not SchemaType.PROTOBUF:
        problem = (
            f"The schema of the {options.column} in the registry is {schema.type.value}, not "
            f"PROTOBUF. Change the option '{options.column}Format'."
        )
        raise OptionsError([problem])
    messages = compiled_messages(schema)
    # Writers that choose no message use the first one of a subject (message indexes [0]).
    return _first(messages) if options.message is None else messages.named(options.message)


def _first(messages: Messages) -> Descriptor:
    from .invalid_descriptor import InvalidDescriptorError

    found = messages.at(())
    if found is None:
        raise InvalidDescriptorError("it has no messages")
    return found


def _encoder(options: ValueOptions, schema: Schema | None, struct: StructType) -> ValueEncoder:
    schema = schema or text_schema(options)
    with _usable(options):
        from .encoder import ProtobufEncoder

        return ProtobufEncoder(options.column, _message(options, schema), schema, struct)


VALUE_FORMAT: Final = ValueFormat(_data_type, _decoder, _encoder)
