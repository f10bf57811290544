"""Laws that hold for all records, and for all bytes."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords
from pyspark_kafka.domain.reading.errors import CorruptBatchError, MalformedTimestampError
from verification.fuzz.inputs import case_from, mutated
from verification.fuzz.trial import try_case

from .batches import FORMATS, LZ4, Record, encoded, log
from .reading import END, row_of, rows, rows_of_peer

MOST = (2**63 - 1) // 1_000

values = st.none() | st.binary(max_size=40) | st.integers(0, 4_000).map(bytes)
header_keys = st.text(st.characters(codec="utf-8"), max_size=5)
timestamps = st.integers(-MOST, MOST) | st.integers(-1, 2**41)


@st.composite
def records(draw: DrawFn) -> list[Record]:
    """Return records with ascending offsets and any timestamps."""
    offset = draw(st.sampled_from([0, 1, 100, 2**31, 2**53, END - 500]))
    found = []
    for _ in range(draw(st.integers(1, 12))):
        headers = draw(st.lists(st.tuples(header_keys, values), max_size=3))
        record = Record(offset, draw(values), draw(values), draw(timestamps), tuple(headers))
        found.append(record)
        offset += draw(st.sampled_from([1, 1, 1, 2, 7]))
    return found


formats = st.sampled_from(FORMATS)


@given(records(), st.lists(formats, min_size=1, max_size=4), st.data())
def test_rows_are_records(found, kinds, data):
    """Any range of any records in any formats has the rows that kafka-python reads."""
    share = -(-len(found) // len(kinds))
    parts = [found[start : start + share] for start in range(0, len(found), share)]
    pairs = list(zip(parts, kinds, strict=False))
    fetched = log(*(encoded(part, *kind) for part, kind in pairs))
    expected = [row_of(record, magic) for part, (magic, _) in pairs for record in part]
    if (0, LZ4) not in kinds:  # which it reads with one more package
        assert rows_of_peer(fetched) == expected
    bounds = st.integers(max(0, found[0].offset - 2), found[-1].offset + 2)
    first, end = sorted((data.draw(bounds), data.draw(bounds)))
    assert rows(fetched) == expected
    assert rows(fetched, first, end) == [at for at in expected if first <= at.offset < end]


@given(records(), formats, st.data())
def test_what_is_cut_off_at_its_end_has_the_rows_of_its_whole_batches(found, kind, data):
    fetched = encoded(found, *kind)
    whole = rows(fetched)
    cut = fetched[: data.draw(st.integers(0, len(fetched)))]
    behind = FetchedRecords.of(cut).next_offset
    assert rows(cut) == ([at for at in whole if at.offset < behind] if behind is not None else [])


def dice(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  # nothing is secret


def read(blob: bytes, *, check_crcs: bool) -> None:
    """Read bytes, which may fail in two ways."""
    try:
        found = rows(blob, check_crcs=check_crcs)
    except (CorruptBatchError, MalformedTimestampError):
        return
    offsets = [at.offset for at in found]
    assert offsets == sorted(set(offsets))


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_become_rows_or_are_refused(blob, check_crcs):
    read(blob, check_crcs=check_crcs)


@given(st.sampled_from([0, 1, 2]), st.binary(max_size=200))
def test_any_bytes_behind_a_beginning(magic, blob):
    size = max(len(blob), 49) - 5
    read(bytes(8) + size.to_bytes(4) + bytes(4) + bytes([magic]) + blob, check_crcs=False)


@given(records(), formats, st.integers(0, 2**32))
def test_batches_in_which_some_bytes_were_changed_become_rows_or_are_refused(found, kind, seed):
    changed = mutated(dice(seed), encoded(found, *kind))
    for check_crcs in (True, False):
        read(changed, check_crcs=check_crcs)


@given(st.integers(0, 2**64))
@settings(max_examples=1_000)
def test_hostile_batches(seed):
    """Batches whose checksums are right and whose records are hostile become rows or are refused.

    With much memory and with little that is the same, and nothing outside of it is touched.
    """
    try_case(case_from(dice(seed)))
