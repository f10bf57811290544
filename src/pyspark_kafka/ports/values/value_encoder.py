"""Encoding typed columns to values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from ...domain.values.registered_schema import Schema


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
