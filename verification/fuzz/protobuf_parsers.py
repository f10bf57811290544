"""The decoder of Protobuf values, held against upb by messages that are made of any bytes."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from pyspark_kafka.adapters.values.columns import column_set, decoding
from pyspark_kafka.adapters.values.columns.column_set import ColumnSet
from pyspark_kafka.adapters.values.protobuf.decoder import ProtobufDecoder
from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.ports.values.value_format import Payloads
from tests.unit.adapters.values.json.payloads import payloads_of
from tests.unit.adapters.values.protobuf.cases import ALL, PLAIN
from tests.unit.adapters.values.protobuf.oracle import REFUSED, expected, outcomes
from tests.unit.adapters.values.protobuf.schemas import message_named
from tests.unit.adapters.values.protobuf.test_round_trips import NAMES
from tests.unit.adapters.values.protobuf.wire import damaged, message_bytes

from .guarded import guarded_array, little_memory
from .parsers import Parser, quickly

VARIANTS: Final = 16
"""How many other messages an input becomes, of each kind."""

_SETTINGS: Final = {
    "": replace(PLAIN, max_recursion=10),
    "-all-options": replace(ALL, max_recursion=10),
}


def try_values(name: str, settings: ProtobufSettings, values: Sequence[bytes]) -> None:
    """Decode messages in both directions, with little room, and hold each against upb's."""
    descriptor = message_named(name)
    wanted = message_type(descriptor, settings)
    decoder = ProtobufDecoder(descriptor, wanted, settings)
    little = little_memory({column_set: {"_MIN_DATA": 1}})
    with little, patch.object(decoding, "ColumnSet", _small_columns):
        found = []
        for each in (values, values[::-1]):
            with quickly():
                found.append(decoder.decode(_guarded_payloads(each)))
    rows, reverse = map(outcomes, found)
    assert rows == reverse[::-1]
    for value, row in zip(values, rows, strict=True):
        right = expected(descriptor, value, wanted, settings)
        assert (REFUSED if isinstance(row, int) else row) == right, value.hex()


def warm_up() -> None:
    """Compile the kernel, and the schemas."""
    descriptor = message_named(NAMES[0])
    decoder = ProtobufDecoder(descriptor, message_type(descriptor, PLAIN), PLAIN)
    decoder.decode(_guarded_payloads([b""]))
    for name in NAMES:
        try_values(name, PLAIN, [b""])


def _small_columns(columns: Any, rows: int, *_: Any) -> ColumnSet:
    return ColumnSet(columns, rows, 0)


def _guarded_payloads(values: Sequence[bytes]) -> Payloads:
    return replace(payloads_of(values), values=guarded_array(values))


def _read(name: str, settings: ProtobufSettings, content: bytes) -> None:
    dice = random.Random(content)  # noqa: S311  # nothing is secret
    values = [content, *(content[: dice.randrange(len(content) + 1)] for _ in range(VARIANTS))]
    values += [damaged(dice, content) for _ in range(VARIANTS)]
    descriptor = message_named(name)
    made = [message_bytes(dice, descriptor) for _ in range(VARIANTS)]
    try_values(name, settings, [*values, *made, *(damaged(dice, value) for value in made)])


def _valid(name: str) -> list[bytes]:
    dice = random.Random(name)  # noqa: S311  # nothing is secret
    return [message_bytes(dice, message_named(name))]


PARSERS: Final = tuple(
    Parser(f"{name}{suffix}", partial(_read, name, settings), (), _valid(name))
    for name in NAMES
    for suffix, settings in _SETTINGS.items()
)
