"""Formats of values: decoding values to typed columns, and encoding these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ...domain.values.data_types import StructType
    from ...domain.values.registry import Schema
    from ...domain.values.value_options import ValueOptions


@final
@dataclass(frozen=True, slots=True)
class WriterSchema:
    """The schema that values were written with: the id in their framing, and the schema.

    ``message_indexes`` identify the message of a Protobuf schema that a value is: the place of the
    message in its file, then the place of the nested one in it, and so on. With ``message_name``,
    it is the message of that name in the file, and not a nested one.
    """

    schema_id: int | str
    schema: Schema
    message_indexes: tuple[int, ...] = ()
    message_name: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Payloads:
    """The payloads of one batch: the bytes of each value behind its framing.

    Payload ``i`` is ``values.buffers()[2][starts[i]:ends[i]]``. A value that is null (a tombstone)
    has -1 for its start. ``reasons[i]`` is a ``FailureReason``: with any but ``NONE``, the value is
    not decoded. ``writers[i]`` is the index of the value's schema in ``schemas``, or negative: -1
    where the framing names none, and -2, -3 ... for the ids of ``unknown_ids``, which the registry
    does not have.
    """

    values: pa.Array[Any]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    reasons: npt.NDArray[np.uint8]
    writers: npt.NDArray[np.int32]
    schemas: tuple[WriterSchema, ...] = ()
    unknown_ids: tuple[int | str, ...] = ()

    def schema_id(self, row: int) -> int | str | None:
        """Return the schema id in the framing of a value, or ``None`` where there is none."""
        writer = int(self.writers[row])
        if writer == -1:
            return None
        return self.schemas[writer].schema_id if writer >= 0 else self.unknown_ids[-2 - writer]


@final
@dataclass(frozen=True, slots=True)
class DecodedValues:
    """The decoded values of one batch, row for row.

    ``column`` is a struct array in the decoder's type; a tombstone is null. ``reasons[i]`` is a
    ``FailureReason``. A row with any but ``NONE`` is null, or, of JSON, has null for the fields
    that could not be decoded. ``fields[i]`` is the index of the first such field in
    ``field_names``, or -1 where the failure is not of one field.
    """

    column: pa.Array[Any]
    reasons: npt.NDArray[np.uint8]
    fields: npt.NDArray[np.int32]


class ValueDecoder(ABC):
    """Decodes payloads of one format and one schema. It does no I/O."""

    @property
    @abstractmethod
    def data_type(self) -> StructType:
        """The type of the decoded column."""

    @property
    @abstractmethod
    def field_names(self) -> tuple[str, ...]:
        """The names of fields for error messages, nested ones as ``outer.inner``."""

    @abstractmethod
    def decode(self, payloads: Payloads) -> DecodedValues:
        """Return the values, as many rows as payloads.

        One bad value never affects another one. Values whose writer schema cannot be read as the
        decoder's schema are ``INCOMPATIBLE_SCHEMA``. The result is bounded.

        :raises DecodedTooLargeError: if the decoded values exceed what Arrow can address. The
            caller decodes fewer payloads then.
        """


class ValueEncoder(ABC):
    """Encodes struct columns of one type in one format. It does no I/O."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema to register for the values."""

    @property
    def record_name(self) -> str | None:
        """The full name of the schema's record or message, if it has one."""
        return None

    @property
    def message_indexes(self) -> tuple[int, ...] | None:
        """Which message of a Protobuf schema the values are, for their framing."""
        return None

    @abstractmethod
    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        """Return a binary array: each value behind ``prefix``, and null where the row is null.

        :raises UnencodableValueError: for the first row that the schema does not admit.
        """


@final
@dataclass(frozen=True, slots=True)
class ValueFormat:
    """The factories of a format; entry points of ``pyspark_kafka.value_formats`` refer to one.

    The ``Schema`` is the registry's, or ``None`` where the options hold the schema.
    """

    data_type: Callable[[ValueOptions, Schema | None], StructType]
    """Returns the type of decoded values.

    :raises OptionsError: if the schema is missing or invalid.
    """

    decoder: Callable[[ValueOptions, Schema | None, StructType], ValueDecoder]
    """Returns a decoder of the fields of a type: all of ``data_type``, or some.

    :raises OptionsError: if the schema does not have a field in that type.
    """

    encoder: Callable[[ValueOptions, Schema | None, StructType], ValueEncoder] | None = None
    """Returns an encoder of rows of a type; without a schema it is derived from the type.

    :raises OptionsError: if rows of the type cannot have the schema.
    """
