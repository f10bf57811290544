import pytest
from hypothesis import given

from pyspark_kafka.domain.checkpoints.checkpoint_log import (
    CheckpointedBatch,
    kafka_offsets,
    read_batch,
    read_batch_conf,
    read_batch_end,
    write_batch_end,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import logged_offsets

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795251150969,"conf":{"a.b":"c"}}'
OURS = PartitionOffsets({TopicPartition("t", 0): 9, TopicPartition("t", 1): 7})


def batch(*lines: str) -> CheckpointedBatch:
    return read_batch(4, "\n".join(lines).encode())


@pytest.mark.parametrize("text", ['{"t":{"0":9,"1":7}}', '{"t": {"0": 9, "1": 7}}'])
def test_batches_of_the_jvm_connector_and_of_python_sources_are_read_alike(text):
    assert batch("v1", METADATA, text) == CheckpointedBatch(4, 1_795_251_150_969, {"0": OURS})


def test_sources_are_named_by_position_and_only_kafkas_count():
    lines = ("1", '{"t":{"0":9,"1":7}}', "-", '{"logOffset":3}', '{"t":{"0":9,"1":7}}')
    assert batch("v1", METADATA, *lines).offsets == {"1": OURS, "4": OURS}


def test_sources_of_version_2_have_names():
    found = batch("v2", METADATA, 'second:{"t":{"0":9,"1":7}}', "first:-", "other:12")
    assert found.offsets == {"second": OURS}


@pytest.mark.parametrize(
    "metadata", ["", "{}", '{"batchTimestampMs":0}', '{"batchTimestampMs":253402300800000}']
)
def test_a_batch_without_a_time(metadata):
    """Spark wrote no metadata once, and none that say a time before that; no year is 10000."""
    assert batch("v1", metadata, "-") == CheckpointedBatch(4, None, {})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is not an offset log"),
        (b"v1", "it is not an offset log"),
        (b"v1\n\xff", "it is not an offset log"),
        (b"v3\n{}\n-", "maximum supported log version is v2"),
        (b"1\n{}\n-", "failed to read correct log version"),
        (b"v1\n[]\n-", "invalid metadata"),
        (b"v1\n{\n-", "invalid metadata"),
        (b"v1\n" + b"[" * 100_000 + b"\n-", "invalid metadata"),
        (b"v1\n" + b"x" * 100_000, "it is not an offset log|invalid metadata"),
        (b"v" + b"1" * 5_000 + b"\n{}\n-", "failed to read correct log version"),
        (b"v1\n{}" + b"\n" * 10_001, "more than 10,000 sources"),
        (b"v2\n{}\na:-\na:-", "two sources have the same name"),
    ],
)
def test_a_file_that_is_no_offset_log_is_refused(content, problem):
    with pytest.raises(ValueError, match=problem):
        read_batch(0, content)


@pytest.mark.parametrize(
    "text",
    [
        *(None, "-", "None", "null", "1", "{}", '{"t":3}', '{"t":{"x":1}}'),
        *('{"t":{"0":-1}}', '{"a b":{"0":1}}', '{"..":{"0":1}}', '{"t":{"0":1,"0":1}}'),
        *('{"t":{"0":9223372036854775808}}', '{"t":{"2147483648":1}}', '{"t":{"0":NaN}}'),
        f'{{"{"t" * 250}":{{"0":1}}}}',
    ],
)
def test_offsets_that_are_not_kafkas(text):
    assert kafka_offsets(text) is None


END = PartitionOffsets({TopicPartition("t", 0): 23})

# As Spark 4.3 writes it, but for most of the settings.
FROM_SPARK = (
    b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1795250000000,"conf":'
    b'{"spark.sql.shuffle.partitions":"2"}}\n{"t":{"0":23}}'
)


def test_the_bytes_of_a_batch_are_version_metadata_and_offsets():
    expected = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":17,"conf":{}}\n{"t":{"0":23}}'
    assert write_batch_end(END, 17) == expected


@given(logged_offsets)
def test_what_is_written_is_read(offsets):
    assert read_batch_end(write_batch_end(offsets, 0)) == offsets


def test_metadata_of_spark_are_ignored():
    assert read_batch_end(FROM_SPARK) == END


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is not an offset log"),
        (b"v3\n{}\n{}", "maximum supported log version is v2, but encountered v3"),
        (b"v2\n{}\n0:{}", "expected a query with one source, got v2 with 1"),
        (b"v1\n{}", "expected a query with one source, got v1 with 0"),
        (FROM_SPARK + b"\n{}", "expected a query with one source, got v1 with 2"),
        (b"v1\n{}\n-", "Expected e.g."),
        (b"\xff", "it is not an offset log"),
    ],
)
def test_what_is_no_log_of_one_source(content, problem):
    with pytest.raises(ValueError, match=problem):
        read_batch_end(content)


def test_settings_of_a_batch_are_read_back():
    content = write_batch_end(PartitionOffsets({TopicPartition("t", 0): 1}), 5, {"a": "b"})
    assert read_batch_conf(content) == {"a": "b"}
    assert read_batch_end(content) == {TopicPartition("t", 0): 1}


@pytest.mark.parametrize("metadata", ["", "{}", '{"conf":[]}', '{"conf":{"a":1}}'])
def test_a_batch_may_have_no_settings(metadata):
    assert read_batch_conf(f"v1\n{metadata}\n{{}}".encode()) == {}


@pytest.mark.parametrize("metadata", ["[]", "{"])
def test_malformed_settings_are_refused(metadata):
    with pytest.raises(ValueError, match="invalid metadata"):
        read_batch_conf(f"v1\n{metadata}\n{{}}".encode())
