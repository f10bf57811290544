import pytest

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.testing import EditableLogContract

from ..servers.s3 import SECRET


class TestMemoryMetadataLog(EditableLogContract):
    @pytest.fixture
    def log(self):
        return MemoryMetadataLog()

    @pytest.fixture
    def again(self, log):
        """Return the same log: there is no other at its path."""
        return log


class FsspecContract(EditableLogContract):
    """The contract for a path; a subclass provides it."""

    @pytest.fixture
    def path(self):
        raise NotImplementedError

    @pytest.fixture
    def log(self, path):
        return FsspecMetadataLog(path)

    @pytest.fixture
    def again(self, path):
        """Return another log in that directory, with its own connections."""
        return FsspecMetadataLog(path)


class TestLocal(FsspecContract):
    @pytest.fixture
    def path(self, tmp_path):
        return StoragePath(f"{tmp_path}/checkpoint/sources/0")

    @pytest.fixture
    def failing(self, tmp_path):
        """Return a log in a directory whose place a file takes."""
        (tmp_path / "file").touch()
        return FsspecMetadataLog(StoragePath(f"{tmp_path}/file/sources/0"))


class TestHdfs(FsspecContract):
    @pytest.fixture
    def path(self, hdfs, fresh_name):
        return StoragePath(f"{hdfs.url}/{fresh_name()}/sources/0")

    @pytest.fixture
    def failing(self, hdfs, fresh_name):
        """Return a log of a user who may not even list the directory."""
        path = f"/{fresh_name()}"
        hdfs.request("PUT", path, "op=MKDIRS&permission=700")
        return FsspecMetadataLog(StoragePath(f"{hdfs.url}{path}/sources/0", '{"user": "bob"}'))


class TestS3(FsspecContract):
    @pytest.fixture
    def path(self, s3):
        """Return a prefix of a bucket, with the JVM's scheme."""
        return StoragePath(f"s3a://{s3.new_bucket()}/checkpoint/sources/0", s3.storage_options)

    @pytest.fixture
    def failing(self, s3):
        return FsspecMetadataLog(StoragePath("s3a://no-bucket/sources/0", s3.storage_options))

    @pytest.fixture
    def secrets(self):
        return (SECRET,)


class TestFsspecMemory(FsspecContract):
    @pytest.fixture
    def path(self, fresh_name):
        """Return a directory in the memory of this process."""
        return StoragePath(f"memory://{fresh_name()}/sources/0")
