from __future__ import annotations

import pytest
from hypothesis import given

from pyspark_kafka.domain.checkpoints.initial_offset_log import (
    read_initial_offsets,
    write_initial_offsets,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import logged_offsets

OFFSETS = PartitionOffsets({TopicPartition("kafka-initial-offset-2-1-0", n): 0 for n in range(3)})
JSON = b'{"kafka-initial-offset-2-1-0":{"0":0,"1":0,"2":0}}'


def test_bytes() -> None:
    """The file begins with a zero byte and the version's line, as Spark 2.1.0 needs it."""
    assert write_initial_offsets(OFFSETS) == b"\0v1\n" + JSON


@given(logged_offsets)
def test_what_is_written_is_read(offsets: PartitionOffsets) -> None:
    """Any offsets come back as they were."""
    assert read_initial_offsets(write_initial_offsets(offsets)) == offsets


def test_offsets_without_a_version() -> None:
    """Spark 2.1.0 wrote a byte of the length, and the offsets alone."""
    assert read_initial_offsets(bytes([len(JSON)]) + JSON) == OFFSETS


def test_offsets_on_several_lines() -> None:
    """The version is the first line; the rest is JSON."""
    assert read_initial_offsets(b"\0v1\n" + JSON.replace(b",", b",\n")) == OFFSETS


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            b"\0v99999\n" + JSON,
            (
                "UnsupportedLogVersion: maximum supported log version is v1, but encountered "
                "v99999. The log file was produced by a newer version of Spark and cannot be read "
                "by this version. Please upgrade."
            ),
        ),
        (
            b"\0vx\n" + JSON,
            "Log file was malformed: failed to read correct log version from vx.",
        ),
        (
            b"\0v0\n" + JSON,
            "Log file was malformed: failed to read correct log version from v0.",
        ),
        (
            b"\0v\n" + JSON,
            "Log file was malformed: failed to read correct log version from v.",
        ),
        (
            b"\0v1" + JSON,
            "Log file was malformed: failed to detect the log file version line.",
        ),
        (b"\0v1\n\xff", "Log file was malformed: it is not text."),
        (b"", 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got '),
        (b"\0v1\n[]", 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got []'),
    ],
)
def test_refusals(content: bytes, problem: str) -> None:
    """What cannot be read is refused with Spark's words."""
    with pytest.raises(ValueError, match=r"\S") as caught:
        read_initial_offsets(content)
    assert str(caught.value) == problem
