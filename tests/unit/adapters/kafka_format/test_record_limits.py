"""Records beyond limits: an error or a report, in little memory."""

import subprocess
import sys
from typing import Any

import pytest

from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import CorruptBatchError, OversizedRecordError
from pyspark_kafka.domain.reading.record_limits import OversizedRecords, RecordLimits
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection

from .batches import CODECS, GZIP, LEGACY, NONE, Batch, Record, encoded, log, raw_batch, varint
from .bombs import NAMES
from .reading import END, T, rows

MIB = 1024 * 1024

SMALL = Record(0, b"v")
LARGE = {
    "maxRecordBytes": Record(0, b"v" * 3 * MIB),
    "maxRecordHeaders": Record(0, headers=(("k", None),) * 5),
    "maxRecordHeaderBytes": Record(0, headers=(("k", b"v" * 600),) * 2),
}
LIMITS = {"max_bytes": 2 * MIB, "max_headers": 4, "max_header_bytes": 1_000}


def written(option: str, *larges: int, count: int = 6) -> list[Record]:
    """Return records, with large ones at some offsets."""
    return [
        (LARGE[option] if offset in larges else SMALL)._replace(offset=offset)
        for offset in range(count)
    ]


def oversized(*, skips: bool = False, **limits: int) -> OversizedRecords:
    return OversizedRecords(RecordLimits(**(LIMITS | limits), skips=skips))


def until_error(fetched: bytes, start: int = 0) -> tuple[list[int], OversizedRecordError]:
    """Return the offsets before the error, and the error."""
    found: list[Any] = []
    decoder = RecordDecoder(T, ALL_COLUMNS, oversized=oversized())
    batches = decoder.decode(FetchedRecords.of(fetched), start, END)
    with pytest.raises(OversizedRecordError) as caught:
        found.extend(offset for batch in batches for offset in batch["offset"].to_pylist())
    assert decoder.next_offset == caught.value.offset
    return found, caught.value


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("option", LARGE)
def test_an_oversized_record_is_an_error(option, codec):
    """The records before it are yielded; a read may begin after it, and end before it."""
    fetched = bytes(Batch.of(written(option, 3), codec))
    found, error = until_error(fetched)
    assert found == [0, 1, 2]
    assert (error.partition, error.offset, error.option) == (T, 3, option)
    assert error.size > error.limit
    assert [row.offset for row in rows(fetched, 4, oversized=oversized())] == [4, 5]
    assert [row.offset for row in rows(fetched, 0, 3, oversized=oversized())] == [0, 1, 2]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("option", LARGE)
@pytest.mark.parametrize("larges", [(0,), (5,), (2, 3), (0, 1, 2, 3, 4, 5)])
def test_oversized_records_are_skipped(option, codec, larges):
    more = [SMALL._replace(offset=offset) for offset in (6, 7)]
    fetched = log(Batch.of(written(option, *larges), codec), Batch.of(more, codec))
    taken = oversized(skips=True)
    found = [row.offset for row in rows(fetched, oversized=taken)]
    assert found == [offset for offset in range(8) if offset not in larges]
    [loss] = taken.take_skipped()
    assert f"Skipped {len(larges)} record" in loss.warning
    assert f"'{option}'" in loss.warning


@pytest.mark.parametrize(("magic", "codec"), LEGACY)
def test_the_messages_of_formats_0_and_1_have_the_limit_of_bytes(magic, codec):
    fetched = encoded(written("maxRecordBytes", 3), magic, codec)
    found, error = until_error(fetched)
    assert (found, error.offset, error.option) == ([0, 1, 2], 3, "maxRecordBytes")
    taken = oversized(skips=True)
    assert [row.offset for row in rows(fetched, oversized=taken)] == [0, 1, 2, 4, 5]
    assert len(list(taken.take_skipped())) == 1
    assert [row.offset for row in rows(fetched, 4, oversized=oversized())] == [4, 5]


def test_headers_that_are_not_read_have_no_limit():
    fetched = bytes(Batch.of(written("maxRecordHeaders", 3)))
    decoder = RecordDecoder(T, Projection(("value",)), oversized=oversized())
    found = decoder.decode(FetchedRecords.of(fetched), 0, END)
    assert sum(batch.num_rows for batch in found) == 6


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (varint(3 * MIB) + b"\0\0", "a record extends past its end"),
        (varint(3 * MIB) + b"\0\0\0", "a record extends past its end"),
        (varint(3 * MIB) + b"\0" + b"\xff" * 10 + bytes(20), "extends past|more bytes than"),
        (varint(3 * MIB) + b"\0\0" + varint(7) + bytes(3 * MIB - 3), "do not ascend"),
        (varint(3 * MIB) + b"\0" + b"\xff" * 10 + bytes(3 * MIB - 11), "more bytes than"),
    ],
)
def test_a_large_record_that_is_corrupt(body, reason, codec):
    fetched = bytes(raw_batch(body, count=1, codec=codec))
    for skips in (True, False):
        errors: Any = (
            CorruptBatchError
            if skips or codec == NONE
            else (CorruptBatchError, OversizedRecordError)
        )
        with pytest.raises(errors, match=f"{reason}|KAFKA_OVERSIZED"):
            rows(fetched, oversized=oversized(skips=skips))


def test_bombs_take_little_memory():
    """512 MiB of one record in some kilobytes end in the error, or are skipped, within 1 GiB.

    That is the address space of the process, code and Arrow's reserve included.
    """
    command = [sys.executable, "-m", "tests.unit.adapters.kafka_format.bombs"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not ended.stderr
    outcomes = dict(line.split(": ") for line in ended.stdout.splitlines())
    assert outcomes.keys() == {f"{name} {codec}" for name, codec in NAMES}
    assert set(outcomes.values()) == {"refused at 0, skipped"}
