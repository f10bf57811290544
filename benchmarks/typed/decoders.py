"""The decoders of typed values alone, on one core, compared with Python's fastest libraries."""

from __future__ import annotations

import itertools
from functools import partial
from io import BytesIO
from json import loads
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.bootstrap.plugins import value_format_named
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.value_options import ParseMode, ValueOptions
from pyspark_kafka.ports.values.value_types import struct_type

from ..fresh_process import on_one_core
from ..rates import records_per_second
from ..results import RECORDS_PER_SECOND, Comparison, Section
from ..rounds import alternate
from ..topics import Shape, values_of
from .events import (
    ALL_DDL,
    AVRO,
    AVRO_EVENTS,
    BAD_JSON,
    DDL,
    JSON,
    MESSAGE,
    PROTOBUF_EVENTS,
    descriptor_set,
    message_class,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..bench import Bench

    Decode = Callable[[pa.Array[Any]], object]

BATCH_ROWS: Final = 16_384
OURS: Final = "decoder"
LIBRARY: Final = "library"

SHAPES: Final = {"json": (JSON, BAD_JSON), "avro": (AVRO_EVENTS,), "protobuf": (PROTOBUF_EVENTS,)}

ABOUT: Final = (
    f"A process on one core decodes batches of {BATCH_ROWS:,} values, repeatedly: four of the "
    "seven fields of an event, or all of them. The libraries are pyarrow's JSON reader, for which "
    "the values are joined by line breaks (it refuses a batch with bad values), fastavro, and "
    "protobuf with its C core, upb; the latter two make Python objects, which still have to become "
    "columns."
)


def measure_decoders(bench: Bench) -> Section:
    """Compare the decoder of each format with a library."""
    comparisons = [
        _compare(bench, format_name, shape, ddl)
        for format_name, shapes in SHAPES.items()
        for shape in shapes
        for ddl in (DDL, ALL_DDL)
    ]
    return Section(
        "typed-decoders",
        "The decoders of typed values alone, one core",
        ABOUT,
        RECORDS_PER_SECOND,
        tuple(comparisons),
    )


def _compare(bench: Bench, format_name: str, shape: Shape, ddl: str) -> Comparison:
    fields = ddl.count(",") + 1
    names = (OURS,) if shape is BAD_JSON else (OURS, LIBRARY)
    seconds = bench.plan.read_seconds
    runs = {
        name: partial(on_one_core, decoding_rate, name, format_name, shape, ddl, seconds)
        for name in names
    }
    case = f"{shape.name}, {fields} of 7 fields"
    return Comparison(case, alternate(runs, bench.plan), shape.value_bytes)


def decoding_rate(name: str, format_name: str, shape: Shape, ddl: str, seconds: float) -> float:
    """Return the values per second, after a warm-up."""
    batches = _batches(shape)
    decode = _ours(format_name, ddl) if name == OURS else LIBRARIES[format_name](ddl)
    decode(batches[0])
    return records_per_second(_repeated(decode, batches), seconds)


def _batches(shape: Shape) -> list[pa.Array[Any]]:
    values = values_of(shape)
    return [
        pa.array(values[start : start + BATCH_ROWS], pa.binary())
        for start in range(0, len(values) - BATCH_ROWS + 1, BATCH_ROWS)
    ]


def _repeated(decode: Decode, batches: list[pa.Array[Any]]) -> Iterator[int]:
    for batch in itertools.cycle(batches):
        decode(batch)
        yield len(batch)


def _ours(format_name: str, ddl: str) -> Decode:
    options = ValueOptions(
        column="value",
        format=format_name,
        schema={"json": ddl, "avro": AVRO, "protobuf": None}[format_name],
        descriptor=descriptor_set() if format_name == "protobuf" else None,
        message=MESSAGE if format_name == "protobuf" else None,
        mode=ParseMode.PERMISSIVE,
    )
    framing = ValueFraming(options)
    decoder = value_format_named(format_name).decoder(options, None, parse_struct(ddl))
    return lambda batch: decoder.decode(framing.payloads(batch))


def _pyarrow(ddl: str) -> Decode:
    from pyarrow import json

    wanted: Any = struct_type(parse_struct(ddl).fields)
    parsing = json.ParseOptions(
        explicit_schema=pa.schema(list(wanted)), unexpected_field_behavior="ignore"
    )
    reading = json.ReadOptions(use_threads=False, block_size=64 << 20)

    def decode(batch: pa.Array[Any]) -> None:
        whole = pa.ListArray.from_arrays(pa.array([0, len(batch)], pa.int32()), batch)
        lines: Any = pc.binary_join(whole, b"\n")
        source: Any = pa.BufferReader(lines[0].as_buffer())
        json.read_json(source, read_options=reading, parse_options=parsing)

    return decode


def _fastavro(ddl: str) -> Decode:
    import fastavro

    writer = fastavro.parse_schema(loads(AVRO))
    names = set(parse_struct(ddl).names)
    fields = [field for field in loads(AVRO)["fields"] if field["name"] in names]
    reader = fastavro.parse_schema({**loads(AVRO), "fields": fields})

    def decode(batch: pa.Array[Any]) -> None:
        values: list[Any] = batch.to_pylist()
        for value in values:
            fastavro.schemaless_reader(BytesIO(value), writer, reader)

    return decode


def _upb(_ddl: str) -> Decode:
    parse = message_class().FromString

    def decode(batch: pa.Array[Any]) -> None:
        for value in batch.to_pylist():
            parse(value)

    return decode


LIBRARIES: Final[Mapping[str, Callable[[str], Decode]]] = {
    "json": _pyarrow,
    "avro": _fastavro,
    "protobuf": _upb,
}
