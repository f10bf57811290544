"""A format of values, as the factories of its decoder and its encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.values.data_types import StructType
    from ...domain.values.registered_schema import Schema
    from ...domain.values.value_options import ValueOptions
    from .value_decoder import ValueDecoder
    from .value_encoder import ValueEncoder


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
