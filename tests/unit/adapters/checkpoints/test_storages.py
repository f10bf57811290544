import os
import re
import sys

import pytest
from fsspec.registry import _registry as known_to_fsspec

from pyspark_kafka.adapters.checkpoints.hdfs_server import HdfsServer
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.checkpoints.storages import location_of, place_of
from pyspark_kafka.bootstrap.checks import check_sink, check_source
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import (
    MetadataLogError,
    MissingDependencyError,
    UnsupportedFeatureError,
)

from ..options import EXACTLY_ONCE, sink_of, source_of


@pytest.mark.parametrize(
    ("given", "scheme", "url"),
    [
        ("/data/x", "file", "/data/x"),
        ("data/x", "file", "data/x"),
        ("/data/a::b:/c", "file", "/data/a::b:/c"),
        ("file:///data/x", "file", "/data/x"),
        ("file:/data/x", "file", "/data/x"),
        ("hdfs:/x", "hdfs", "hdfs:///x"),
        ("hdfs://host:8020/x", "hdfs", "hdfs://host:8020/x"),
        ("WebHDFS://host:9870/x", "webhdfs", "WebHDFS://host:9870/x"),
        ("s3a://bucket/x@y", "s3a", "s3a://bucket/x@y"),
        ("memory://x", "memory", "memory://x"),
    ],
)
def test_every_spelling_is_understood(given, scheme, url):
    """A local path or a URL of Hadoop, the JVM or fsspec becomes a URL of fsspec."""
    location = location_of(StoragePath(given))
    assert (location.scheme, location.url) == (scheme, url)


def test_keys_in_the_url_of_a_bucket_become_options():
    """Keys in URLs, as in older Hadoops, become options; given options override them."""
    given = location_of(StoragePath("s3://k:s%2Ft@b/x", '{"token": "t"}'))
    assert (given.url, given.options) == ("s3://b/x", {"key": "k", "secret": "s/t", "token": "t"})
    assert location_of(StoragePath("s3://k:s@b/x", '{"key": "o"}')).options["key"] == "o"
    assert repr(given) == "Location(scheme='s3')"


def test_hdfs_is_opened_as_hadoops_clients_do(monkeypatch):
    """The default user is Hadoop's or the process's, unless other authentication is set."""
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    server = HdfsServer(host="h")
    assert server.url == "http://h:9870/webhdfs/v1"
    assert server.parameters() == {"user.name": "ada"}


@pytest.mark.parametrize(
    ("login", "parameters"),
    [
        ({"token": "t"}, {"delegation": "t"}),
        ({"kerberos": True, "proxy_to": "ann"}, {"doas": "ann"}),
        ({"user": "u", "password": "p"}, {}),
        ({"user": "u"}, {"user.name": "u"}),
    ],
)
def test_a_login_to_hdfs_is_a_parameter_or_a_header(login, parameters):
    assert HdfsServer(host="h", **login).parameters() == parameters


@pytest.mark.parametrize(
    "options", [{"kerberos": True, "user": "u"}, {"token": "t", "user": "u"}, {"password": "p"}]
)
def test_two_logins_to_hdfs_and_half_a_login_are_refused(options):
    with pytest.raises(ValueError, match="log in by 'user' and 'password', by 'token' or by"):
        HdfsServer(host="h", **options)


def test_files_of_tls_that_are_unusable_are_named(tmp_path):
    with pytest.raises(ValueError, match="'session_cert' or 'session_verify' is unusable: "):
        HdfsServer(host="h", session_cert=str(tmp_path / "none.pem")).tls()


@pytest.mark.parametrize("url", ["ftp://host/x", "simplecache::s3://b/x", "http://host/x"])
def test_a_storage_that_may_replace_files_is_refused(url):
    with pytest.raises(UnsupportedFeatureError, match=r"Supported are file, .*webhdfs, s3, s3a"):
        FsspecMetadataLog(StoragePath(url))


def without_package(monkeypatch: pytest.MonkeyPatch, module: str, scheme: str) -> None:
    """Simulate a missing package, although fsspec may have cached its class."""
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(known_to_fsspec, scheme, raising=False)


@pytest.mark.parametrize(
    ("scheme", "package", "requirement"),
    [
        ("s3", "s3fs", "'pyspark-kafka[s3]'"),
        ("gs", "gcsfs", "gcsfs"),
        ("gcs", "gcsfs", "gcsfs"),
        ("az", "adlfs", "adlfs"),
        ("abfs", "adlfs", "adlfs"),
        ("abfss", "adlfs", "adlfs"),
    ],
)
def test_a_missing_package_is_named(scheme, package, requirement, monkeypatch):
    """A storage whose package is not installed says what to install, also when options are checked.

    Spark checks them in ``load()`` and when a write starts, before a stream asks for the log.
    """
    without_package(monkeypatch, package, scheme)
    path = StoragePath(f"{scheme}://host/x")
    expected = re.escape(
        f"'{scheme}://' is not installed. Install it with: pip install {requirement}"
    )
    with pytest.raises(MissingDependencyError, match=f"{expected}$"):
        FsspecMetadataLog(path)
    given = {"metadataPath": path.url}
    with pytest.raises(MissingDependencyError, match=expected):
        check_source(source_of("memory", given))
    with pytest.raises(MissingDependencyError, match=expected):
        check_sink(sink_of("memory", EXACTLY_ONCE | given))


def test_hdfs_without_a_host_is_refused():
    """Hadoop's configuration is not read to find the NameNode."""
    with pytest.raises(MetadataLogError, match="have a 'host'"):
        FsspecMetadataLog(StoragePath("hdfs:///x")).get(0)


def test_a_relative_path_starts_at_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FsspecMetadataLog(StoragePath("log")).add(0, b"x")
    assert os.listdir(tmp_path / "log") == ["0"]


def test_a_log_is_shown_without_credentials():
    log = FsspecMetadataLog(StoragePath("s3://key:secret@bucket/x", '{"token": "hush"}'))
    assert str(log) == "s3://bucket/x"
    assert repr(log) == "FsspecMetadataLog('s3://bucket/x')"


@pytest.mark.parametrize(
    "spellings",
    [
        ("s3://b/x/y", "s3a://b/x/y/", "s3://k:s@b/x//y"),
        ("gs://b/x", "gcs://b/x/"),
        ("abfs://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x/"),
        ("hdfs://n:8020/x", "hdfs://u@n/x", "webhdfs://n:9870/x/"),
        ("x/y", "./x/../x/y/", f"file://{os.getcwd()}/x/y", f"file:{os.getcwd()}/x/y"),
    ],
)
def test_the_spellings_of_a_path_are_one_place(spellings):
    assert len({place_of(StoragePath(each)) for each in spellings}) == 1


def test_a_copy_is_at_another_place(tmp_path, monkeypatch):
    places = [
        *(place_of(StoragePath(url)) for url in ("s3://b/x", "s3://c/x", "s3://b/y", "gs://b/x")),
        *(place_of(StoragePath(f"hdfs://{name}/x")) for name in ("n", "m")),
        *(place_of(StoragePath(f"abfs://{name}@a/x")) for name in ("c", "d")),
    ]
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        places.append(place_of(StoragePath("checkpoint")))
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("url", ["~/checkpoint", "hdfs://h/checkpoint"])
def test_a_user_without_a_name_is_told_what_to_set(url, monkeypatch):
    """As in a container whose user has a number only."""
    for name in ("HADOOP_USER_NAME", "HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_123)
    with pytest.raises(MetadataLogError, match=r"set (HOME|HADOOP_USER_NAME)"):
        FsspecMetadataLog(StoragePath(url)).latest()
