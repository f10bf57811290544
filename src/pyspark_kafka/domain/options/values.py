"""Parsing the options of typed values, of a read and of a write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ..checkpoints.storage_path import StoragePath
from ..values.data_types import parse_struct
from ..values.registry import RegistryOptions, registry_problems
from ..values.value_options import BYTES, Framing, OnNewSchema, ParseMode, ValueOptions
from . import source_table as table
from . import value_table
from .option import REGISTRY_PREFIX
from .value_table import AVRO, BY_COLUMN, FORMAT_OPTIONS, JSON, PROTOBUF, SINK_FORMAT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from .option import Option, Reading
    from .value_table import ColumnOptions


_FILE_SUFFIXES: Final = (".avsc", ".desc", ".pb", ".proto")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_REGISTRY: Final = f"'{value_table.REGISTRY_URL.name}'"
_BUILT_IN: Final = frozenset({AVRO, JSON, PROTOBUF})


@final
@dataclass(frozen=True, slots=True)
class TypedOptions:
    """The parsed options of typed values."""

    values: tuple[ValueOptions, ...] = ()
    registry: RegistryOptions | None = None


def read_values(reading: Reading, columns: Iterable[str] | None) -> TypedOptions:
    """Return the formats of a read or a write, and add what is wrong with their options.

    ``columns`` are those that a read has; for a write it is ``None``.
    """
    return _ValueReading(reading, columns is None, frozenset(columns or ())).typed()


def registry_settings(reading: Reading) -> dict[str, str]:
    """Return the options of the registry by their names, which are in lower case."""
    return {
        name: value for name, value in reading.given.items() if name.startswith(REGISTRY_PREFIX)
    }


def format_option_names(reading: Reading) -> set[str]:
    """Return the names of given options of a format that this library does not have.

    Such a format has no table here: its options begin with its name and a dot.
    """
    formats = {reading.read(options.format) for options in BY_COLUMN} - _BUILT_IN
    return {name for name in reading.given for one in formats if name.startswith(f"{one}.")}


@final
@dataclass(frozen=True, slots=True)
class _ValueReading:
    reading: Reading
    writes: bool
    columns: frozenset[str]

    def typed(self) -> TypedOptions:
        registry = self._registry()
        used = [options for options in BY_COLUMN if self.reading.read(options.format) != BYTES]
        self._refuse_unused(used)
        if used and not self.writes:
            self._check_common(used, registry)
        values = tuple(self._value(options, registry) for options in used)
        return TypedOptions(values, registry)

    def _registry(self) -> RegistryOptions | None:
        given = registry_settings(self.reading)
        url = self.reading.read(value_table.REGISTRY_URL)
        if url is None:
            self._problems(f"Option '{name}' needs {_REGISTRY}" for name in sorted(given))
            return None
        settings = {
            name.removeprefix(REGISTRY_PREFIX): value
            for name, value in given.items()
            if name != value_table.REGISTRY_URL.key
        }
        options = RegistryOptions(url, tuple(sorted(settings.items())))
        self._problems(registry_problems(options))
        return options

    def _refuse_unused(self, used: list[ColumnOptions]) -> None:
        """Add a problem for each option that has no effect without a format."""
        for options in BY_COLUMN:
            if options not in used:
                own = options.writing if self.writes else options.reading
                self._needs(own[1:], f"'{options.format.name}'")
        shared = (value_table.REGISTRY_URL, value_table.SUBJECT_NAME_STRATEGY)
        registering = (value_table.AUTO_REGISTER, value_table.USE_LATEST)
        if not used:
            common = registering if self.writes else value_table.COMMON
            self._needs((*common, *shared), "'valueFormat' or 'keyFormat'")
        formats = {self.reading.read(options.format) for options in used}
        for name, own in self._format_options().items():
            if name not in formats:
                self._needs(own, f"the format '{name}'")

    def _needs(self, options: Iterable[Option[Any]], what: str) -> None:
        self._problems(
            f"Option '{option.name}' needs {what}"
            for option in options
            if option.key in self.reading.given
        )

    def _check_common(self, used: list[ColumnOptions], registry: RegistryOptions | None) -> None:
        """Add what is wrong with the options of both columns of a read."""
        if registry is None and self.reading.read(value_table.ON_NEW_SCHEMA) is OnNewSchema.FAIL:
            self._needs([value_table.ON_NEW_SCHEMA], _REGISTRY)
        if all(self.reading.read(options.format) != JSON for options in used):
            self._needs([value_table.CORRUPT_RECORD], f"the format '{JSON}'")
        mode = self.reading.read(value_table.MODE)
        letters = value_table.DEAD_LETTER_TOPIC
        if mode is ParseMode.FAILFAST and self.reading.read(letters) is not None:
            self.reading.problems.append(
                f"Option '{letters.name}' needs another mode: FAILFAST fails the query at the "
                "first record that cannot be decoded"
            )
        if mode not in {None, ParseMode.PERMISSIVE}:
            kept = "the mode PERMISSIVE, which keeps records that cannot be decoded"
            if self.reading.read(value_table.INCLUDE_ERRORS):
                self._needs([value_table.INCLUDE_ERRORS], kept)
            self._needs([value_table.CORRUPT_RECORD], kept)

    def _mode(self) -> ParseMode:
        mode = self.reading.read(value_table.MODE)
        if mode is not None:
            return mode
        if self.reading.read(value_table.INCLUDE_ERRORS) or self._corrupt_record() is not None:
            return ParseMode.PERMISSIVE
        has_letters = self.reading.read(value_table.DEAD_LETTER_TOPIC) is not None
        return ParseMode.DROPMALFORMED if has_letters else ParseMode.FAILFAST

    def _corrupt_record(self) -> str | None:
        return self.reading.read(value_table.CORRUPT_RECORD)

    def _value(self, options: ColumnOptions, registry: RegistryOptions | None) -> ValueOptions:
        format_name = self.reading.read(options.format)
        self._check_column(options, format_name)
        schema, schema_file = self._schema(options, format_name)
        framing = self._framing(options, registry)
        if registry is None:
            self._needs((options.subject, options.schema_version), _REGISTRY)
        common: dict[str, Any]
        if self.writes:
            registering = (value_table.AUTO_REGISTER, value_table.USE_LATEST)
            if registry is None:
                self._needs(registering, _REGISTRY)
            automatic, latest = map(self.reading.read, registering)
            common = {"auto_register_schemas": automatic, "use_latest_version": latest}
        else:
            common = {
                "mode": self._mode(),
                "corrupt_record_column": self._corrupt_record() if format_name == JSON else None,
                "include_errors": self.reading.read(value_table.INCLUDE_ERRORS),
                "on_new_schema": self.reading.read(value_table.ON_NEW_SCHEMA),
                "flatten": self.reading.read(options.flatten),
            }
        return ValueOptions(
            column=options.column,
            format=format_name,
            schema=schema,
            schema_file=schema_file,
            message=self.reading.read(options.message),
            framing=framing,
            subject=self.reading.read(options.subject),
            schema_version=self.reading.read(options.schema_version),
            subject_name_strategy=self.reading.read(value_table.SUBJECT_NAME_STRATEGY),
            settings=tuple(self._settings(format_name)),
            **common,
        )

    def _check_column(self, options: ColumnOptions, format_name: str) -> None:
        given = self.reading.given
        if not self.writes and options.column not in self.columns:
            included = table.INCLUDED[options.column].name
            self.reading.problems.append(
                f"Option '{options.format.name}' needs the column '{options.column}', and "
                f"'{included}' is false"
            )
        if options.message.key in given and format_name in {AVRO, JSON}:
            self._needs([options.message], f"the format '{PROTOBUF}'")

    def _schema(
        self, options: ColumnOptions, format_name: str
    ) -> tuple[str | None, StoragePath | None]:
        """Return the text of a schema, or else the path of its file."""
        text = self.reading.read(options.schema)
        if text is None:
            return None, None
        if text.lower().endswith(_FILE_SUFFIXES):
            return None, StoragePath(text, self.reading.read(table.METADATA_STORAGE_OPTIONS))
        if _URL.match(text):
            self.reading.problems.append(
                f"Option '{options.schema.name}': the file of a schema must end with "
                f"{', '.join(_FILE_SUFFIXES)}"
            )
        elif format_name == JSON:
            try:
                parse_struct(text)
            except ValueError as error:
                self.reading.problems.append(f"Option '{options.schema.name}': {error}")
        return text, None

    def _framing(self, options: ColumnOptions, registry: RegistryOptions | None) -> Framing:
        chosen = self.reading.read(options.framing)
        if chosen is None:
            return Framing.NONE if registry is None else Framing.CONFLUENT
        if self.writes and chosen.is_apicurios:
            self.reading.problems.append(
                f"{options.framing.name} '{chosen.value}' is for reads. Write with "
                f"'{Framing.CONFLUENT.value}': Apicurio's deserializers read that, with content "
                "ids of 4 bytes"
            )
        # A read can skip ids and take the schema of the options for the writers', too.
        if self.writes and chosen is not Framing.NONE and registry is None:
            self.reading.problems.append(
                f"{options.framing.name} '{chosen.value}' needs {_REGISTRY}"
            )
        return chosen

    def _format_options(self) -> Mapping[str, tuple[Option[Any], ...]]:
        return SINK_FORMAT_OPTIONS if self.writes else FORMAT_OPTIONS

    def _settings(self, format_name: str) -> Iterator[tuple[str, str]]:
        own = {option.key: option for option in self._format_options().get(format_name, ())}
        for name, text in sorted(self.reading.given.items()):
            if name in own:
                self.reading.read(own[name])
                yield name, text.strip()
            elif format_name not in _BUILT_IN and name.startswith(f"{format_name}."):
                yield name.removeprefix(f"{format_name}."), text

    def _problems(self, found: Iterable[str]) -> None:
        self.reading.problems += found
