"""Random values of random schemas, held against fastavro and upb, in both directions."""

import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa

from pyspark_kafka.adapters.values.avro.encoder import AvroEncoder
from pyspark_kafka.adapters.values.avro.value_format import VALUE_FORMAT as AVRO
from pyspark_kafka.adapters.values.protobuf.encoder import ProtobufEncoder
from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.adapters.values.protobuf.writer_checks import unreadable_field
from pyspark_kafka.domain.values.errors import FailureReason, UnencodableValueError
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import ValueOptions
from tests.unit.adapters.values.avro.decoding import decoder_of as avro_decoder_of
from tests.unit.adapters.values.avro.decoding import plain
from tests.unit.adapters.values.avro.strategies import expected as expected_avro
from tests.unit.adapters.values.json.payloads import payloads_of
from tests.unit.adapters.values.protobuf.oracle import (
    REFUSED,
    decoder_of,
    expected,
    outcomes,
    python_values,
)
from tests.unit.adapters.values.protobuf.wire import damaged, message_bytes

from . import random_avro, random_protobuf

VALUES: Final = 500
"""Values of each schema."""

SETTINGS: Final = (
    *(ProtobufSettings(max_recursion=3),) * 3,
    ProtobufSettings(max_recursion=3, upcast_unsigned=True, enums_as_ints=True),
    ProtobufSettings(max_recursion=3, emit_defaults=True, unwrap_wrappers=True),
)


_REPLACED: Final = frozenset(
    {FailureReason.OUT_OF_RANGE, FailureReason.BAD_UTF8, FailureReason.MALFORMED}
)


class ValueTrial:
    """Each round has a schema of each format, its evolution, and values in both directions."""

    def __init__(self, say: Callable[[str], None], values: int = VALUES) -> None:
        """Take what reports differences, and the number of values of each schema."""
        self._say = say
        self._values = values
        self.counts: Counter[str] = Counter()

    def run_round(self, seed: int) -> bool:
        """Return whether all values were equal."""
        dice = Random(seed)  # noqa: S311  # nothing is secret
        kept = [self._avro(dice, seed), self._protobuf(dice, seed)]
        if seed % 100 == 0:
            self._say(f"seed {seed}: {dict(self.counts)}")
        return all(kept)

    def _avro(self, dice: Random, seed: int) -> bool:
        writer = random_avro.RandomSchemas(dice).record()
        reader = random_avro.evolved(dice, writer) if dice.random() < 0.7 else writer
        texts = [random_avro.with_names(one) for one in (writer, reader)]
        parsed: list[Any] = [fastavro.parse_schema(json.loads(json.dumps(one))) for one in texts]
        values = [random_avro.random_value(dice, writer) for _ in range(self._values)]
        datums = [_written(parsed[0], value) for value in values]
        read = [fastavro.schemaless_reader(io.BytesIO(one), *parsed) for one in datums]
        wanted = [expected_avro(one, reader) for one in read]
        decoder = avro_decoder_of(texts[0], settings={"avroSchema": json.dumps(texts[1])})
        decoded = decoder.decode(payloads_of(datums))
        decoded.column.validate(full=True)
        found = [plain(one) for one in decoded.column]
        self.counts["avro read"] += len(found)
        is_same = self._same(f"avro read, seed {seed}: {texts}", found, wanted, datums)
        return self._avro_write(dice, seed, texts[0], writer, values) and is_same

    def _avro_write(
        self, dice: Random, seed: int, text: Any, writer: Any, values: Sequence[Any]
    ) -> bool:
        """Write what was read with the writer's own schema, as a slice with a null in front."""
        options = ValueOptions("value", "avro", schema=json.dumps(text))
        struct = AVRO.data_type(options, None)
        decoder = AVRO.decoder(options, None, struct)
        parsed = fastavro.parse_schema(json.loads(json.dumps(text)))
        datums = [_written(parsed, value) for value in values]
        column = decoder.decode(payloads_of([None, *datums])).column.slice(dice.randrange(2))
        encoder = AvroEncoder("value", Schema(SchemaType.AVRO, json.dumps(text)), struct)
        encoded = encoder.encode(column, b"id")
        written = [None if one is None else one[2:] for one in encoded.to_pylist()]
        self.counts["avro write"] += len(written)
        found = [
            None if one is None else expected_avro(_read(parsed, one), writer) for one in written
        ]
        wanted = [expected_avro(value, writer) for value in values]
        wanted = [None] * (len(found) - len(wanted)) + wanted
        return self._same(f"avro write, seed {seed}: {text}", found, wanted, written)

    def _protobuf(self, dice: Random, seed: int) -> bool:
        file = random_protobuf.RandomFile(dice)
        writer = file.message()
        reader = writer
        if dice.random() < 0.5:
            reader = random_protobuf.message_of(random_protobuf.evolved(dice, file))
        settings = dice.choice(SETTINGS)
        struct = message_type(reader, settings)
        if not struct.fields or unreadable_field(reader, writer, struct) is not None:
            self.counts["protobuf schemas without fields"] += 1
            return True
        values = [message_bytes(dice, writer) for _ in range(self._values)]
        values += [damaged(dice, one) for one in values[: self._values // 10]]
        decoded = decoder_of(reader, struct, settings).decode(payloads_of([None, *values]))
        wanted = [expected(reader, one, struct, settings) for one in values]
        replaces = _has_oneof(reader)
        found = [
            self._known(one, right, replaces=replaces)
            for one, right in zip(outcomes(decoded)[1:], wanted, strict=True)
        ]
        self.counts["protobuf read"] += len(found)
        text = str(file.proto)
        is_same = self._same(f"protobuf read, seed {seed}: {text}", found, wanted, values)
        if settings.enums_as_ints or settings.unwrap_wrappers:
            return is_same
        column = decoded.column.filter(pa.array(decoded.reasons == 0))
        return self._protobuf_write(seed, reader, struct, column, settings) and is_same

    def _known(self, found: Any, wanted: Any, *, replaces: bool) -> Any:
        """Return a row, or what is expected instead if decision 0025 has the difference.

        What refuses a record may be in a message that another member of a oneof replaces: a time
        that overflows, an element without a required field, or a text of a map that is not UTF-8.
        Java refuses such texts too, while it parses, and upb does not.
        """
        if replaces and isinstance(found, int) and found in _REPLACED and wanted != REFUSED:
            self.counts["protobuf values that are replaced"] += 1
            return wanted
        return REFUSED if isinstance(found, int) else found

    def _protobuf_write(
        self, seed: int, message: Any, struct: Any, column: Any, settings: ProtobufSettings
    ) -> bool:
        encoder = ProtobufEncoder("value", message, None, struct)
        fits = np.ones(len(column), np.bool_)
        if not _fits(encoder, column):
            fits[:] = [_fits(encoder, column[row : row + 1]) for row in range(len(column))]
        column = column.filter(pa.array(fits))
        encoded = encoder.encode(column, b"id")
        written = [None if one is None else one[2:] for one in encoded.to_pylist()]
        self.counts["protobuf write"] += len(written)
        self.counts["protobuf rows that no message has"] += int((~fits).sum())
        found = [
            None if one is None else expected(message, one, struct, settings) for one in written
        ]
        wanted = python_values(column)
        return self._same(f"protobuf write, seed {seed}: {message.file}", found, wanted, written)

    def _same(
        self, what: str, found: Sequence[Any], wanted: Sequence[Any], values: Sequence[Any]
    ) -> bool:
        for one, right, value in zip(found, wanted, values, strict=True):
            if one != right:
                self._say(f"{what[:3000]}\n value {value!r}\n found {one!r}\n wanted {right!r}")
                return False
        return True


def _written(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def _read(schema: Any, datum: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(datum), schema, None)


def _has_oneof(message: Any) -> bool:
    return any(field.containing_oneof for each in _messages(message) for field in each.fields)


def _messages(message: Any) -> list[Any]:
    return list(message.file.message_types_by_name.values())


def _fits(encoder: ProtobufEncoder, rows: Any) -> bool:
    """Return whether rows can be written: enums may have numbers without a name."""
    try:
        encoder.encode(rows)
    except UnencodableValueError as error:
        if "is null" in error.reason or "is not a symbol" in error.reason:
            return False
        raise
    return True
