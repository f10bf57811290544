"""Trying one case: what has to hold for any bytes."""

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
from kafka.errors import CorruptRecordError
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import decode_varint
from snappy import UncompressError

from pyspark_kafka.adapters.kafka_format import (
    column_buffers,
    decompression,
    record_blocks,
    status,
)
from pyspark_kafka.adapters.kafka_format.batch_headers import AbortedTransaction
from pyspark_kafka.adapters.kafka_format.decompression import FAILURES
from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
    MalformedTimestampError,
    OversizedRecordError,
)
from pyspark_kafka.domain.reading.records import COLUMNS, Projection
from tests.unit.adapters.kafka_format.batches import CONTROL, TRANSACTIONAL, ZSTD
from tests.unit.adapters.kafka_format.reading import T, rows_of, rows_of_peer

from .guarded import guarded_copy, little_memory
from .inputs import END, Case
from .parsers import decode_quickly

_CODECS_FAILURE: Final = "cannot be decompressed"

PEER_FAILURES: Final = (CorruptRecordError, IndexError, UncompressError, zlib.error, *FAILURES)
"""Errors of kafka-python and its codecs for corrupt bytes."""


class Outcome(NamedTuple):
    """The outcome of a case: its rows, and the error behind them, if any."""

    rows: list[tuple[Any, ...]]
    error: str | None


def try_case(case: Case) -> Outcome:
    """Decode a case twice, with much room and with little, and compare; raise what is wrong."""
    stretch = FetchedRecords.of(
        guarded_copy(case.blob), [AbortedTransaction(*transaction) for transaction in case.aborted]
    )
    usual = decode_quickly(lambda: _outcome(case, stretch))
    with _little_room(case.room):
        tight = _outcome(case, stretch)
    _hold_same(case, stretch, usual, tight)
    _hold_order(case, usual)
    _hold_peer(case, stretch, usual)
    return usual


def _little_room(room: dict[str, int]) -> AbstractContextManager[None]:
    scratch = {"SCRATCH_BYTES": room.get("scratch", 16)}
    columns = {
        "MAX_ROWS": room.get("rows", 2),
        "DEFAULT_BYTES": room.get("bytes", 16),
        "DEFAULT_HEADERS": room.get("headers", 2),
    }
    return little_memory({column_buffers: columns, record_blocks: scratch, decompression: {}})


def _outcome(case: Case, stretch: FetchedRecords) -> Outcome:
    decoder = RecordDecoder(T, Projection(case.columns), check_crcs=case.check_crcs)
    found: list[pa.RecordBatch] = []
    error: str | None = None
    try:
        found += decoder.decode(stretch, case.from_offset, case.until_offset)
    except (CorruptBatchError, MalformedTimestampError, OversizedRecordError) as problem:
        error = f"{type(problem).__name__}: {problem}"
    for batch in found:
        batch.validate(full=True)
        assert batch.num_rows > 0
    return Outcome([row for batch in found for row in _tuples(batch)], error)


def _tuples(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = []
    for name in batch.schema.names:
        column = batch.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        columns.append(column.to_pylist())
    return zip(*columns, strict=True)


def _hold_same(case: Case, stretch: FetchedRecords, usual: Outcome, tight: Outcome) -> None:
    errors = f"{usual.error} {tight.error}"
    cut_off = status.REASONS[status.TRUNCATED] in errors
    batches = stretch.index.batches
    # That a large record is cut off shows only where all of it is decompressed. Elsewhere it is
    # oversized, what is there of it is wrong, or it is behind the range and of no interest.
    is_behind = any(batch.last_offset >= case.until_offset for batch in batches)
    are_told = is_behind or None not in {usual.error, tight.error}
    is_large = cut_off and are_told and usual.error != tight.error
    is_zstd = any(batch.codec == ZSTD for batch in batches)
    if _CODECS_FAILURE in errors or is_large or (cut_off and is_zstd):
        # How far a codec comes before it fails, or sees that its input is cut off, is up to how
        # much it is asked for.
        common = min(len(usual.rows), len(tight.rows))
        assert tight.rows[:common] == usual.rows[:common]
    else:
        assert tight == usual


def _hold_order(case: Case, usual: Outcome) -> None:
    if "offset" in case.columns:
        place = case.columns.index("offset")
        offsets = [row[place] for row in usual.rows]
        assert all(before < after for before, after in pairwise(offsets))
        assert all(case.from_offset <= offset < case.until_offset for offset in offsets)


def _hold_peer(case: Case, stretch: FetchedRecords, usual: Outcome) -> None:
    """Check that records which kafka-python reads without complaint are read here."""
    comparable = usual.error is None and case.columns == COLUMNS and case.check_crcs
    whole = case.from_offset == 0 and case.until_offset == END
    if not comparable or not whole:
        return
    batches = stretch.index.batches
    if any(batch.magic < 2 or batch.attributes & (CONTROL | TRANSACTIONAL) for batch in batches):
        return
    if any(later.base_offset <= batch.last_offset for batch, later in pairwise(batches)):
        return  # no broker has it, and what was passed is not read again
    end = batches[-1].end if batches else 0
    try:
        if _has_long_attributes(case.blob[:end]):
            return
        expected = rows_of_peer(case.blob[:end])
    except PEER_FAILURES:
        return
    decoder = RecordDecoder(T, Projection(COLUMNS))
    assert rows_of(decoder.decode(stretch, 0, END)) == expected


def _has_long_attributes(blob: bytes) -> bool:
    """Say whether a record has attributes that kafka-python takes for more than their one byte."""
    for batch in MemoryRecords(blob):
        iter(batch)  # decompresses
        data, position = batch._buffer, batch._pos
        for _ in range(batch.records_count):
            length, position = decode_varint(data, position)
            if position < len(data) and data[position] >= 0x80:
                return True
            position += length
    return False
