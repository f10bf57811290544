"""Metadata logs between the JVM and this library, in both directions."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.entries import write_initial_offsets
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from ..servers.hdfs import Hdfs

OFFSETS = PartitionOffsets.from_json('{"orders":{"0":23,"1":0}}')


class Hadoop:
    """Hadoop's own filesystem, in the JVM of Spark."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._directory = directory
        configuration = self._jvm.org.apache.hadoop.conf.Configuration()
        self._filesystem = self._path("").getFileSystem(configuration)

    def read(self, name: str) -> bytes:
        stream = self._filesystem.open(self._path(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        stream = self._filesystem.create(self._path(name))
        stream.write(content)
        stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._directory}/{name}")


def spark_log(spark: SparkSession, directory: str) -> Any:
    jvm: Any = spark._jvm
    package = jvm.org.apache.spark.sql.execution.streaming.checkpointing
    return package.CommitLog(spark._jsparkSession, directory, False)


@pytest.fixture(params=["local", "hdfs"])
def directory(request, tmp_path):
    if request.param == "local":
        return f"file:{tmp_path}/log", f"file:{tmp_path}/log"
    hdfs: Hdfs = request.getfixturevalue("hdfs")
    fresh_name: Callable[[], str] = request.getfixturevalue("fresh_name")
    name = fresh_name()
    return f"{hdfs.native_url}/{name}", f"{hdfs.url}/{name}"


def test_the_jvm_reads_what_we_write(spark, directory):
    theirs, ours = directory
    content = write_initial_offsets(OFFSETS)
    assert FsspecMetadataLog(StoragePath(ours)).add(0, content)
    assert Hadoop(spark, theirs).read("0") == content


def test_we_read_what_the_jvm_writes(spark, directory):
    theirs, ours = directory
    Hadoop(spark, theirs).write("7", b"seven")
    log = FsspecMetadataLog(StoragePath(ours))
    assert log.latest() == (7, b"seven")
    assert list(log.batch_ids()) == [7]
    assert not log.add(7, b"ours")


def test_a_file_of_ours_is_not_held_to_the_checksums_of_another(spark, tmp_path):
    """A purge deletes checksum files; checksums of other files have no effect."""
    hadoop = Hadoop(spark, f"file:{tmp_path}")
    log = FsspecMetadataLog(StoragePath(str(tmp_path)))
    for name in ("0", "1"):
        hadoop.write(name, b"of the JVM")
        assert (tmp_path / f".{name}.crc").exists()
    log.purge(1)
    assert not (tmp_path / ".0.crc").exists()
    (tmp_path / "1").unlink()
    for batch_id in (0, 1):
        assert log.add(batch_id, b"another content")
        assert hadoop.read(str(batch_id)) == b"another content"


def test_a_log_of_spark_continues_as_ours(spark, directory):
    theirs, ours = directory
    spark_writes = spark_log(spark, theirs)
    log = FsspecMetadataLog(StoragePath(ours))
    jvm: Any = spark._jvm
    metadata = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CommitMetadata
    for batch_id in range(3):
        assert spark_writes.add(batch_id, metadata(batch_id * 10))
    _, content = log.latest() or (None, b"")
    assert content.startswith(b"v1\n")
    assert log.add(3, content)
    assert not spark_writes.add(3, metadata(0))
    assert spark_writes.getLatest().get()._1() == 3
    assert spark_writes.getLatest().get()._2().nextBatchWatermarkMs() == 20
    log.purge(2)
    assert list(spark_writes.listBatchesOnDisk()) == [2, 3]
