from collections.abc import Sequence
from typing import Any

import pytest

from pyspark_kafka.adapters.confluent.gather_kernel import (
    BAD_HEADERS,
    EVENT,
    TIMESTAMP_TYPE,
    ConsumerCalls,
    destroy,
    gather,
)
from pyspark_kafka.adapters.kafka_format import column_buffers, status
from pyspark_kafka.adapters.kafka_format import decode_cursor as at
from pyspark_kafka.adapters.kafka_format.column_buffers import BatchBuilder
from pyspark_kafka.adapters.kafka_format.column_mask import column_mask
from pyspark_kafka.domain.reading.record_limits import RecordLimits
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.domain.topic_partition import TopicPartition

from .messages import FakeLibrary, Sent

BAD_MESSAGE = -199
MOST = 2**62
DEFAULT_LIMITS = RecordLimits()


class Gathering:
    def __init__(
        self,
        sent: Sequence[Sent],
        projection: Projection = ALL_COLUMNS,
        limits: RecordLimits = DEFAULT_LIMITS,
    ) -> None:
        self.limits = limits.numbers
        self.library = FakeLibrary(sent)
        self.calls = ConsumerCalls(self.library)  # type: ignore[arg-type]
        self.mask = column_mask(projection) | TIMESTAMP_TYPE * ("timestampType" in projection)
        self.builder = BatchBuilder(TopicPartition("t", 0), projection)
        self.builder.cursor[at.OFFSET] = -1

    def run(self, until_offset: int = MOST) -> int:
        result: int = gather(
            self.library.addresses,
            self.builder.cursor,
            until_offset,
            self.mask,
            self.limits,
            self.builder.buffers.arrays,
            self.calls.addresses,
        )
        return result

    def drop(self) -> None:
        destroy(self.library.addresses, self.calls.addresses)

    def rows(self) -> list[dict[str, Any]]:
        return self.builder.finish().to_pylist()


def test_every_part_of_a_message_is_written():
    headers = ((b"a", b"1"), (b"", None), (b"a", b""))
    gathering = Gathering([Sent(7, b"value", b"key", headers, (1_000, 2))])
    assert gathering.run() == status.DONE
    [row] = gathering.rows()
    assert row.pop("timestamp").timestamp() == 1
    assert row == {
        "key": b"key",
        "value": b"value",
        "topic": "t",
        "partition": 0,
        "offset": 7,
        "timestampType": 1,
        "headers": [
            {"key": "a", "value": b"1"},
            {"key": "", "value": None},
            {"key": "a", "value": b""},
        ],
    }


def test_a_message_without_a_timestamp_has_kafkas_type_for_that():
    gathering = Gathering([Sent(0, timestamp=(-1, 0))], Projection(("timestampType", "timestamp")))
    assert gathering.run() == status.DONE
    [row] = gathering.rows()
    assert (row["timestampType"], row["timestamp"].timestamp()) == (-1, -0.001)


def test_every_message_is_destroyed_once():
    gathering = Gathering([Sent(0), Sent(1), Sent(2), Sent(3, error=-191), Sent(4)])
    assert gathering.run(until_offset=2) == status.DONE
    assert gathering.library.destroyed == {0: 1, 1: 1}
    gathering.drop()
    gathering.drop()
    assert gathering.library.destroyed == {0: 1, 1: 1, 2: 1, 3: 1, 4: 1}


def test_what_lies_outside_of_the_range_is_not_written():
    gathering = Gathering([Sent(4), Sent(5), Sent(5), Sent(6), Sent(9)])
    gathering.builder.cursor[at.OFFSET] = 4
    assert gathering.run(until_offset=7) == status.DONE
    assert gathering.builder.cursor[at.OFFSET] == 9
    assert [row["offset"] for row in gathering.rows()] == [5, 6]


def test_a_message_that_is_none_is_left_for_the_caller():
    gathering = Gathering([Sent(0), Sent(1, error=-191), Sent(2)])
    assert gathering.run() == EVENT
    assert gathering.builder.cursor[at.RECORD] == 1
    assert [row["offset"] for row in gathering.rows()] == [0]
    assert gathering.library.destroyed == {0: 1}


@pytest.mark.parametrize("beyond", [2**63 // 1_000 + 1, -(2**63 // 1_000) - 1])
def test_a_timestamp_that_does_not_fit_is_reported(beyond):
    sent = [Sent(0), Sent(1, timestamp=(beyond, 1)), Sent(2)]
    gathering = Gathering(sent)
    assert gathering.run() == status.BAD_TIMESTAMP
    assert gathering.builder.cursor[at.TIMESTAMP] == beyond
    assert [row["offset"] for row in gathering.rows()] == [0]
    without = Gathering(sent, Projection(("offset", "timestampType")))
    assert without.run() == status.DONE
    assert [row["offset"] for row in without.rows()] == [0, 1, 2]


def test_headers_that_cannot_be_read_are_reported():
    gathering = Gathering([Sent(0), Sent(1, headers_error=BAD_MESSAGE)])
    assert gathering.run() == BAD_HEADERS
    assert gathering.builder.rows == 1


@pytest.mark.parametrize(
    ("sent", "full"),
    [
        (Sent(1, key=bytes(3 * column_buffers.DEFAULT_BYTES)), status.KEYS_FULL),
        (Sent(1, value=bytes(3 * column_buffers.DEFAULT_BYTES)), status.VALUES_FULL),
        (Sent(1, headers=((b"h", b"1"),) * 70_000), status.HEADERS_FULL),
        (
            Sent(1, headers=((b"h" * 3 * column_buffers.DEFAULT_BYTES, b""),)),
            status.HEADER_KEYS_FULL,
        ),
        (
            Sent(1, headers=((b"h", bytes(3 * column_buffers.DEFAULT_BYTES)),)),
            status.HEADER_VALUES_FULL,
        ),
    ],
    ids=["key", "value", "headers", "header key", "header value"],
)
def test_a_large_message_waits_for_room(sent, full):
    gathering = Gathering([Sent(0), sent, Sent(2)], limits=RecordLimits(max_headers=1_000_000))
    assert gathering.run() == full
    assert [row["offset"] for row in gathering.rows()] == [0]
    while (result := gathering.run()) != status.DONE:
        assert result == full
        gathering.builder.buffers.grow(full)
    large, small = gathering.rows()
    assert (large["key"], large["value"]) == (sent.key, sent.value)
    assert len(large["headers"] or ()) == len(sent.headers)
    assert small["offset"] == 2
    assert gathering.library.destroyed == {0: 1, 1: 1, 2: 1}


def test_rows_that_are_full_end_the_batch():
    count = column_buffers.MAX_ROWS + 2
    gathering = Gathering([Sent(number) for number in range(count)], Projection(("offset",)))
    assert gathering.run() == status.ROWS_FULL
    assert len(gathering.rows()) == column_buffers.MAX_ROWS
    assert gathering.run() == status.DONE
    assert [row["offset"] for row in gathering.rows()] == [count - 2, count - 1]


@pytest.mark.parametrize(
    ("sent", "limits", "result", "size"),
    [
        (Sent(1, b"12345", b"678"), RecordLimits(7), status.RECORD_TOO_LARGE, 8),
        (Sent(1, b"1", b"2", ((b"a", b"34"),)), RecordLimits(4), status.RECORD_TOO_LARGE, 5),
        (
            Sent(1, headers=((b"a", None), (b"b", b""))),
            RecordLimits(max_headers=1),
            status.TOO_MANY_HEADERS,
            2,
        ),
        (
            Sent(1, headers=((b"a", b"12"), (b"b", None), (b"cd", b"3"))),
            RecordLimits(max_header_bytes=6),
            status.HEADERS_TOO_LARGE,
            7,
        ),
    ],
)
def test_a_message_beyond_a_limit_stays(sent, limits, result, size):
    """The kernel stops before it and says how large it is; the message before it is a row."""
    gathering = Gathering([Sent(0, b"v"), sent], limits=limits)
    assert gathering.run() == result
    cursor = gathering.builder.cursor
    assert (cursor[at.RECORD], cursor[at.OFFSET], cursor[at.SIZE]) == (1, 0, size)
    assert [row["offset"] for row in gathering.rows()] == [0]


def test_a_message_at_the_limits_is_read():
    headers = ((b"a", b"12"), (b"b", None))
    gathering = Gathering([Sent(0, b"1", b"2", headers)], limits=RecordLimits(6, 2, 4))
    assert gathering.run() == status.DONE
    without = Gathering(
        [Sent(0, b"1", b"2", headers)], Projection(("key", "value")), RecordLimits(2, 1, 1)
    )
    assert without.run() == status.DONE
