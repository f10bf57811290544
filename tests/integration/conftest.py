from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath

if TYPE_CHECKING:
    from ..servers.hdfs import Hdfs
    from ..servers.s3 import S3Server


@pytest.fixture(params=["local", "hdfs", "s3"])
def storage(request, tmp_path, fresh_name):
    """Return a directory in each storage in turn, which does not exist yet."""
    if request.param == "local":
        return StoragePath(f"{tmp_path}/checkpoint")
    if request.param == "hdfs":
        hdfs: Hdfs = request.getfixturevalue("hdfs")
        return StoragePath(f"{hdfs.url}/{fresh_name()}")
    s3: S3Server = request.getfixturevalue("s3")
    return StoragePath(f"s3a://{s3.new_bucket()}/checkpoint", s3.storage_options)
