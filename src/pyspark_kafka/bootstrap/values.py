"""The decoders of a process, and the schema registry of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..application.values.column_decoder import ColumnDecoder, NewSchemas
from ..application.values.schema_cache import PATIENCE_S, SchemaCache
from ..domain.errors import OptionsError
from ..domain.values.registry import registry_problems, registry_settings
from ..domain.values.value_options import OnNewSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.values.registry import RegistryOptions
    from ..domain.values.typed_schema import TypedColumn
    from ..ports.values.schema_registry import SchemaRegistry
    from ..ports.values.value_format import ValueFormat


MAX_DECODERS: Final = 16
"""The decoders that are kept: a query has one for each column and schema."""


@final
class ValueDecoders:
    """Makes a decoder for each column, and keeps those that were used last."""

    def __init__(
        self,
        formats: Callable[[str], ValueFormat],
        registry: Callable[[], SchemaRegistry | None],
    ) -> None:
        self._formats = formats
        self._registry = registry
        self._decoders: dict[TypedColumn, ColumnDecoder] = {}

    def get(self, column: TypedColumn) -> ColumnDecoder:
        """Return the decoder of a column.

        :raises OptionsError: if its schema cannot be used.
        """
        decoder = self._decoders.pop(column, None) or self._new(column)
        self._decoders[column] = decoder
        if len(self._decoders) > MAX_DECODERS:
            del self._decoders[next(iter(self._decoders))]
        return decoder

    def _new(self, column: TypedColumn) -> ColumnDecoder:
        from ..adapters.values.framing.value_framing import ValueFraming

        options, registry = column.options, self._registry()
        value_format = self._formats(options.format)
        decoder = value_format.decoder(options, column.schema, column.decoded_type)
        new_schemas = None
        if options.on_new_schema is OnNewSchema.FAIL and registry and column.version:
            new_schemas = NewSchemas(registry, column.version)
        return ColumnDecoder(column, ValueFraming(options, registry), decoder, new_schemas)


def open_registry(options: RegistryOptions) -> SchemaCache:
    """Return a registry that caches its results; no request is sent yet.

    :raises OptionsError: if the options cannot be used.
    """
    problems = registry_problems(options)
    if problems:
        raise OptionsError(problems)
    from ..adapters.values.registry.http_registry import HttpSchemaRegistry

    try:
        settings = registry_settings(options)
        patience_s = min(PATIENCE_S, settings.timeout_ms / 1_000)
        return SchemaCache(HttpSchemaRegistry(settings), patience_s=patience_s)
    except ValueError as error:
        # Not chained: the option may hold a key instead of a file.
        raise OptionsError([str(error)]) from None
