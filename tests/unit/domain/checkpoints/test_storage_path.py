import pytest

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("/data/a@b", "/data/a@b"),
        ("s3://key:secret@bucket/p", "s3://bucket/p"),
        ("s3://bucket/p@q/r", "s3://bucket/p@q/r"),
        ("webhdfs://host:9870/p", "webhdfs://host:9870/p"),
        ("hdfs://user:p@ss@host", "hdfs://host"),
        ("s3://key:sec/r:et@bucket/p", "s3://bucket/p"),
        ("s3:/key:secret@bucket/p", "s3:/bucket/p"),
        ("s3://key:98/secret@bucket/p", "s3://bucket/p"),
        ("hdfs:/user/ann@example.com", "hdfs:/user/ann@example.com"),
        ("webhdfs://host:9870/p@q", "webhdfs://host:[hidden]@q"),
        ("webhdfs://host/p?delegation=abc/commits", "webhdfs://host/p?[hidden]"),
    ],
)
def test_credentials_are_not_shown(url, shown):
    path = StoragePath(url, '{"secret": "hush"}')
    assert str(path) == shown
    assert repr(path) == "StoragePath()"


def test_paths_below_a_path_have_its_options():
    child = StoragePath("s3://b/X//", '{"key": 1}').child("offsets")
    assert (child.url, child.options) == ("s3://b/X/offsets", {"key": 1})


def test_an_empty_path_is_refused():
    """No text names the working directory by accident."""
    with pytest.raises(ValueError, match="must not be empty"):
        StoragePath(" ")
