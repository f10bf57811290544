"""Messages to columns and columns to messages, in memory that ends at forbidden pages.

The functions of librdkafka are replaced, so that its messages are in such memory, too.
"""

from __future__ import annotations

import random
from collections import Counter
from ctypes import CFUNCTYPE, c_int, c_int32, c_int64, c_size_t, c_uint64, string_at
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from pyspark_kafka.adapters.confluent import gather_kernel, produce_kernel
from pyspark_kafka.adapters.confluent.error_codes import QUEUE_FULL
from pyspark_kafka.adapters.confluent.librdkafka import Message
from pyspark_kafka.adapters.confluent.report_kernel import count_delivered
from pyspark_kafka.adapters.kafka_format import (
    column_buffers,
    producer_columns,
    record_encoder,
    status,
)
from pyspark_kafka.adapters.kafka_format import decode_cursor as at
from pyspark_kafka.adapters.kafka_format.column_mask import column_mask
from pyspark_kafka.adapters.kafka_format.compression import Compressor
from pyspark_kafka.domain.reading.record_limits import RecordLimits
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, WITHOUT_HEADERS, Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.writing.batch import ProducerIdAndEpoch
from tests.unit.adapters.confluent.messages import FakeLibrary, Sent
from tests.unit.adapters.kafka_format.reading import rows as decoded_rows

from .guarded import guarded_copy, guarded_empty, little_memory
from .random_columns import BINARIES, TEXTS, RandomColumns

if TYPE_CHECKING:
    from collections.abc import Iterator

    Numbers: TypeAlias = np.ndarray[Any, Any]

MESSAGES: Final = 40
"""The messages or rows of a batch."""

_PROJECTIONS: Final = (
    ALL_COLUMNS,
    WITHOUT_HEADERS,
    Projection(("value", "headers", "offset")),
    Projection(("offset",)),
)
_LIMITS: Final = (RecordLimits(), RecordLimits(150, 3, 100))
_UNTIL: Final = 2**62
_BAD_MESSAGE: Final = -199
_NOW_MS: Final = 1_700_000_000_000
_REFUSED: Final = 0.05


def try_batch(seed: int, number: int) -> Counter[str]:
    """Exchange some messages in each direction; return how many there were."""
    dice = random.Random(f"{seed}/{number}")  # noqa: S311  # nothing is secret
    counted = _try_gathering(dice)
    counted += _try_reports(dice)
    rows = _Rows(np.random.default_rng((seed, number)))
    with little_memory(_LITTLE):
        counted += _try_producing(dice, rows)
        counted += _try_encoding(dice, rows)
    return counted


_LITTLE: Final[dict[ModuleType, dict[str, Any]]] = {
    column_buffers: {"MAX_ROWS": 7, "DEFAULT_BYTES": 16, "DEFAULT_HEADERS": 2},
    gather_kernel: {},
    produce_kernel: {"MESSAGES": 5},
    producer_columns: {},
    record_encoder: {},
}


def _copy(array: Numbers) -> Numbers:
    copied = guarded_empty(array.size, array.dtype).reshape(array.shape)
    copied[:] = array
    return copied


def _try_gathering(dice: random.Random) -> Counter[str]:
    """Gather messages, and compare the rows with those that are to be read."""
    sent = list(_messages(dice))
    projection, limits = dice.choice(_PROJECTIONS), dice.choice(_LIMITS)
    library = FakeLibrary(sent, guarded_copy)
    messages = _copy(library.addresses)
    found: list[dict[str, Any]] = []
    with little_memory(_LITTLE):
        calls = gather_kernel.ConsumerCalls(library)  # type: ignore[arg-type]
        builder = column_buffers.BatchBuilder(TopicPartition("t", 0), projection)
        builder.reset()
        mask = column_mask(projection)
        while True:
            arrays = builder.buffers.arrays
            result = gather_kernel.gather(
                messages, builder.cursor, _UNTIL, mask, limits.numbers, arrays, calls.addresses
            )
            if result == status.DONE:
                break
            if result not in status.FULL:
                builder.cursor[at.RECORD] += 1
            elif builder.rows:
                found += builder.finish().to_pylist()
            else:
                builder.buffers.grow(result)
        found += builder.finish().to_pylist()
        gather_kernel.destroy(messages, calls.addresses)
    assert library.destroyed.total() == len(sent)
    expected = [_row(each) for each in sent if _is_read(each, projection, limits)]
    names = {"key", "value", "headers", "offset"} & {*projection.columns}
    assert [{name: row[name] for name in names} for row in found] == [
        {name: row[name] for name in names} for row in expected
    ]
    return Counter(READ=len(found), NOT_READ=len(sent) - len(found))


def _messages(dice: random.Random) -> Iterator[Sent]:
    for offset in range(dice.randint(1, MESSAGES)):
        names = dice.choices(TEXTS, k=dice.choice((0, 0, 1, 2, 9)))
        headers = tuple((name.replace(b"\0", b""), _value(dice)) for name in names)
        timestamp = dice.choice((-1, 0, _NOW_MS, 2**62))
        error, headers_error = (_BAD_MESSAGE * (dice.random() < _REFUSED) for _ in range(2))
        yield Sent(
            offset, _value(dice), _value(dice), headers, (timestamp, 1), error, headers_error
        )


def _value(dice: random.Random) -> bytes | None:
    return dice.choice((None, *BINARIES))


def _is_read(sent: Sent, projection: Projection, limits: RecordLimits) -> bool:
    """Return whether a message is a row; the test of each limit is elsewhere."""
    size = len(sent.key or b"") + len(sent.value or b"")
    if sent.error or size > limits.max_bytes:
        return False
    if "timestamp" in projection and sent.timestamp[0] > status.MAX_MILLISECONDS:
        return False
    if "headers" not in projection:
        return True
    header_bytes = sum(len(name) + len(value or b"") for name, value in sent.headers)
    return (
        not sent.headers_error
        and len(sent.headers) <= limits.max_headers
        and header_bytes <= limits.max_header_bytes
        and size + header_bytes <= limits.max_bytes
    )


def _row(sent: Sent) -> dict[str, Any]:
    headers = [{"key": name.decode(), "value": value} for name, value in sent.headers]
    row = {"offset": sent.offset, "key": sent.key, "value": sent.value}
    return row | {"headers": headers or None}


def _try_reports(dice: random.Random) -> Counter[str]:
    """Count reports of delivery, but for those of records that failed or have no offset."""
    kept, delivered, expected = [], Counter[int](), Counter[int]()
    for _ in range(dice.randint(1, MESSAGES)):
        output, error = dice.choice((0, 1, 2**40)), _BAD_MESSAGE * (dice.random() < _REFUSED)
        offset = dice.choice((-1_001, -1, 0, 2**62))
        whose = {"rkt": dice.choice((2, 2**50)), "partition": dice.choice((0, 2**31 - 1))}
        message = Message(err=error, private=output, offset=offset, **whose)
        kept.append(guarded_copy(bytes(message)))
        expected[output] += not error and offset >= 0
    messages = _copy(np.array([each.ctypes.data for each in kept], np.uint64))
    runs = guarded_empty(4 * len(messages), np.int64).reshape(-1, 4)
    place = 0
    while place < len(messages):
        place, count = count_delivered(messages, place, 0, runs)
        for output, _, _, number in runs[:count].tolist():
            delivered[output] += number
        place += 1
    assert +delivered == +expected
    return Counter(DELIVERED=delivered.total())


@final
class _Rows:
    """Rows of any layout, and some of them in any order; each has a partition and a topic."""

    def __init__(self, dice: Any) -> None:
        columns = RandomColumns(dice)
        count = 1 + int(dice.integers(MESSAGES))
        self.is_plain = bool(dice.random() < 0.5)
        key, value = (columns.array(types.BINARY, count) for _ in range(2))
        named = {"key": key, "value": value}
        if not self.is_plain:
            named["timestamp"] = columns.array(types.TIMESTAMP, count)
            named["headers"] = columns.headers(count)
        if dice.random() < 0.2:
            named["value"] = value.cast(pa.large_binary())
        self.batch = pa.RecordBatch.from_pydict(named)
        self.numbers = _copy(dice.permutation(count)[: 1 + int(dice.integers(count))])
        self.partitions = _copy(dice.integers(0, 4, len(self.numbers), np.int32))
        cut = int(dice.integers(len(self.numbers) + 1))
        self.topic_ends = _copy(np.array([cut, len(self.numbers)]))

    def records(self) -> list[tuple[Any, ...]]:
        """Return keys, values, and headers of the chosen rows, in their order."""
        rows = self.batch.to_pylist()
        return [_parts(rows[number]) for number in self.numbers.tolist()]


def _parts(row: dict[str, Any]) -> tuple[Any, ...]:
    headers = tuple((each["key"], each["value"]) for each in row.get("headers") or ())
    return row["key"], row["value"], headers


def _try_producing(dice: random.Random, rows: _Rows) -> Counter[str]:
    """Give rows to librdkafka, whose queue is full now and then."""
    library = _Producer(dice)
    columns = producer_columns.kernel_columns(rows.batch, _NOW_MS)
    bases = _copy(produce_kernel.bases_of(columns))
    calls = produce_kernel.ProducerCalls(library, _Producer.CLIENT).arrays  # type: ignore[arg-type]
    produce = produce_kernel.produce_plain if rows.is_plain else produce_kernel.produce_full
    topics = _copy(np.array([7, 8], np.uint64)), rows.topic_ends
    place, code = 0, QUEUE_FULL
    while code:
        assert code == QUEUE_FULL
        place, code = produce(
            columns, bases, rows.numbers, rows.partitions, place, topics, 5, calls
        )
    expected = rows.records()
    cut = int(rows.topic_ends[0])
    of_topics = [7] * cut + [8] * (len(expected) - cut)
    assert library.queued == list(zip(of_topics, rows.partitions.tolist(), expected, strict=True))
    assert not library.lists
    size = sum(
        len(key or b"") + sum(len(name.encode()) + len(value or b"") for name, value in headers)
        for key, _, headers in expected
    )
    assert produce_kernel.uncounted_bytes(columns, rows.numbers) == size
    return Counter(PRODUCED=len(expected), QUEUE_FULL=library.refused)


@final
class _Producer:
    """The functions of librdkafka that queue records."""

    CLIENT: Final = 3
    _ERROR: Final = 77
    _WORDS: Final = 9

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.refused = 0
        self.queued: list[tuple[int, int, tuple[Any, ...]]] = []
        self.lists: dict[int, list[tuple[str, bytes | None]]] = {}
        sized = (c_uint64, c_int64)
        self.rd_kafka_produce_batch = CFUNCTYPE(
            c_int, c_uint64, c_int32, c_int32, c_uint64, c_int32
        )(self._produce_batch)
        self.rd_kafka_produceva = CFUNCTYPE(c_uint64, c_uint64, c_uint64, c_size_t)(self._produceva)
        self.rd_kafka_error_code = CFUNCTYPE(c_int, c_uint64)(lambda _: QUEUE_FULL)
        self.rd_kafka_error_destroy = CFUNCTYPE(None, c_uint64)(lambda _: None)
        self.rd_kafka_headers_new = CFUNCTYPE(c_uint64, c_size_t)(self._headers_new)
        self.rd_kafka_header_add = CFUNCTYPE(c_int, c_uint64, *sized, *sized)(self._header_add)
        self.rd_kafka_headers_destroy = CFUNCTYPE(None, c_uint64)(self._headers_destroy)

    def _is_full(self) -> bool:
        is_full = self._dice.random() < _REFUSED
        self.refused += is_full
        return is_full

    def _produce_batch(self, topic: int, _to: int, _flags: int, first: int, count: int) -> int:
        messages = (Message * count).from_address(first)
        for place, message in enumerate(messages):
            if self._is_full():
                for other in messages[place:]:
                    other.err = QUEUE_FULL
                return place
            key = _bytes_at(message.key, message.key_len)
            record = key, _bytes_at(message.payload, message.len), ()
            self.queued.append((topic, message.partition, record))
        return count

    def _produceva(self, client: int, first: int, count: int) -> int:
        assert client == self.CLIENT
        if self._is_full():
            return self._ERROR
        words = (c_uint64 * (self._WORDS * count)).from_address(first)
        fields = {words[at]: words[at + 1 : at + 3] for at in range(0, len(words), self._WORDS)}
        topic, to, value, key, *_ = (fields[tag] for tag in (2, 3, 4, 5))
        headers = tuple(self.lists.pop(fields[10][0])) if 10 in fields else ()
        record = _bytes_at(*key), _bytes_at(*value), headers
        self.queued.append((topic[0], to[0], record))
        return 0

    def _headers_new(self, _count: int) -> int:
        number = 1 + len(self.queued) + self.refused
        self.lists[number] = []
        return number

    def _header_add(self, number: int, name: int, name_size: int, value: int, size: int) -> int:
        header = string_at(name, name_size).decode(), _bytes_at(value, size)
        self.lists[number].append(header)
        return 0

    def _headers_destroy(self, number: int) -> None:
        del self.lists[number]


def _bytes_at(address: int | None, size: int) -> bytes | None:
    return string_at(address, size) if address else None


def _try_encoding(dice: random.Random, rows: _Rows) -> Counter[str]:
    """Encode rows as batches, and read them."""
    columns = producer_columns.ProducerColumns.of(rows.batch, _NOW_MS)
    encoder = record_encoder.RecordEncoder(Compressor())
    found: list[tuple[Any, ...]] = []
    for chunk in encoder.chunks(columns, rows.numbers, dice.choice((100, 1_000, 2**20))):
        batch = encoder.encode(columns, _copy(chunk), ProducerIdAndEpoch(), 0)
        found += ((row.key, row.value, row.headers or ()) for row in decoded_rows(batch))
    assert found == rows.records()
    return Counter(ENCODED=len(found))
