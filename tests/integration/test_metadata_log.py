"""Metadata logs on real storages, with processes that race, fork and are killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_kafka.adapters.checkpoints.directory import MAX_FILE_BYTES, is_temporary
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError, UnsupportedFeatureError

from ..servers.s3 import run_s3, store
from ..servers.storage_proxy import Behavior, Failure, storage_behind

PROGRAMS = Path(__file__).parent / "programs"
PROCESSES, THREADS, BATCHES = 5, 10, 10


def test_a_file_that_no_query_wrote_is_not_read_to_its_end(storage):
    log = FsspecMetadataLog(storage)
    log.add(0, b"x" * MAX_FILE_BYTES)
    log.add(1, bytes(MAX_FILE_BYTES + 1))
    assert log.get(0) == b"x" * MAX_FILE_BYTES
    with pytest.raises(MetadataLogError, match="The file is larger than 64 MiB") as caught:
        log.get(1)
    assert str(caught.value).endswith(f"({storage}/1)")


def test_of_writers_in_several_processes_one_wins(storage):
    racers = [
        subprocess.Popen(
            [
                sys.executable,
                PROGRAMS / "race_for_batches.py",
                storage.url,
                str(number),
                str(THREADS),
                str(BATCHES),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    won = _race(racers, storage.storage_options)
    assert sorted(batch_id for batch_id, _ in won) == list(range(BATCHES))
    log = FsspecMetadataLog(storage)
    assert {batch_id: log.get(batch_id) for batch_id in range(BATCHES)} == {
        batch_id: metadata.encode() for batch_id, metadata in won
    }


def _race(racers: list[subprocess.Popen[str]], options: str) -> list[tuple[int, str]]:
    for racer in racers:
        assert racer.stdin
        racer.stdin.write(f"{options}\n")
        racer.stdin.flush()
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate()[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * len(racers)
    return [(batch_id, text) for answer in answers for batch_id, text in json.loads(answer)]


def _kill_writers(url: str, kills: int, seconds: float) -> FsspecMetadataLog:
    program = PROGRAMS / "kill_writers.py"
    subprocess.run([sys.executable, program, url, str(kills), str(seconds)], check=True)
    return FsspecMetadataLog(StoragePath(url))


def _is_whole(log: FsspecMetadataLog) -> bool:
    ids = log.batch_ids()
    assert len(ids) > 1
    return list(ids) == list(range(len(ids))) and all(
        log.get(batch_id) == b"%d," % batch_id * 20_000 for batch_id in ids
    )


def test_killed_writers_leave_whole_batches_on_disk(tmp_path):
    log = _kill_writers(f"{tmp_path}/log", 300, 0.02)
    assert _is_whole(log)
    assert log.add(len(log.batch_ids()), b"the next one")
    others = [name for name in os.listdir(tmp_path / "log") if not name.isdigit()]
    assert others
    assert all(map(is_temporary, others))


def test_killed_writers_leave_whole_batches_in_hdfs(hdfs, fresh_name):
    name = fresh_name()
    log = _kill_writers(f"{hdfs.url}/{name}", 60, 0.2)
    assert _is_whole(log)
    assert log.add(len(log.batch_ids()), b"the next one")
    others = [name for name in hdfs.names(f"/{name}") if not name.isdigit()]
    assert others
    assert all(map(is_temporary, others))


@pytest.mark.parametrize("storage", ["hdfs", "s3"], indirect=True)
def test_a_log_works_in_a_forked_process(storage):
    log = FsspecMetadataLog(storage)
    log.add(0, b"parent")
    child = os.fork()
    if child == 0:
        # Nothing of pytest's may run here, not even after an error.
        try:
            os._exit(0 if log.get(0) == b"parent" and log.add(1, b"child") else 1)
        finally:
            os._exit(2)
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert log.get(0) == b"parent"
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    assert log.latest() == (1, b"child")


@pytest.mark.parametrize("storage", ["hdfs"], indirect=True)
def test_old_leftovers_in_hdfs_are_swept(storage, hdfs):
    """A purge deletes temporary files that are a day old, and no newer ones."""
    names = [".0.aa.pyspark-kafka.tmp", ".1.bb.pyspark-kafka.tmp", ".0.cc.tmp"]
    for name in names:
        hdfs.write(f"{_hdfs_path(storage)}/{name}", b"half")
    hdfs.touch(f"{_hdfs_path(storage)}/{names[0]}", modified=1_000)
    hdfs.touch(f"{_hdfs_path(storage)}/{names[2]}", modified=1_000)
    FsspecMetadataLog(storage).purge(0)
    assert hdfs.names(_hdfs_path(storage)) == sorted(names[1:])


def _hdfs_path(path: StoragePath) -> str:
    return "/" + path.url.partition("://")[2].partition("/")[2]


def test_a_user_without_permissions_is_refused(hdfs):
    log = FsspecMetadataLog(StoragePath(f"{hdfs.url}/private", '{"user":"bob"}'))
    with pytest.raises(MetadataLogError, match=r"refuses access.*user=bob") as refusal:
        log.add(0, b"")
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).endswith(f"({hdfs.url}/private/0)")


def test_a_token_is_in_no_message(hdfs):
    """The token in a URL of requests' error is not in the message."""
    closed = f"webhdfs://127.0.0.1:1/log-of-{hdfs.http_port}"
    log = FsspecMetadataLog(StoragePath(closed, '{"token":"hush-hush"}'))
    with pytest.raises(MetadataLogError, match="does not answer") as failure:
        log.latest()
    assert "hush" not in str(failure.value)
    assert failure.value.__suppress_context__


def test_hdfs_by_its_own_scheme_goes_over_webhdfs(hdfs, fresh_name):
    """The JVM's URL is the same directory, given the port of the NameNode's HTTP server."""
    name = fresh_name()
    native = StoragePath(f"{hdfs.native_url}/{name}", json.dumps({"port": hdfs.http_port}))
    assert FsspecMetadataLog(native).add(0, b"x")
    assert FsspecMetadataLog(StoragePath(f"{hdfs.url}/{name}")).get(0) == b"x"


@pytest.mark.parametrize("call", ["add", "get", "latest", "purge"])
def test_a_missing_bucket_is_no_empty_log(s3, call):
    log = FsspecMetadataLog(StoragePath("s3://missing/log", s3.storage_options))
    arguments = {"add": (0, b""), "get": (0,), "latest": (), "purge": (1,)}[call]
    with pytest.raises(
        MetadataLogError, match=r"bucket or directory does not exist.*bucket does not exist"
    ):
        getattr(log, call)(*arguments)


def test_many_batches_are_listed_and_purged_in_few_requests():
    """A thousand more batches need one more request to list, and one to delete."""
    with run_s3() as s3, storage_behind(s3) as (proxy, path):
        bucket, _, prefix = path.url.removeprefix("s3://").partition("/")
        for batch_id in range(1_100):
            store().put_object(bucket, f"{prefix}/{batch_id}", b"x")
        log = FsspecMetadataLog(path)
        assert log.latest() == (1_099, b"x")
        log.purge(1_090)
        # 2 for the list, 1 for the content, 1 for what may follow without being listed yet; 2 for
        # the list, 2 to delete, and 1 to see it done.
        assert proxy.requests == 9
        assert list(log.batch_ids()) == list(range(1_090, 1_100))


def test_a_storage_that_replaces_objects_is_refused():
    with run_s3() as s3, storage_behind(s3) as (proxy, path):
        log = FsspecMetadataLog(path)
        replaces = "a conditional put replaces an existing object"
        with (
            proxy.behaving(Behavior(ignores_conditions=True)),
            pytest.raises(UnsupportedFeatureError, match=replaces),
        ):
            log.add(0, b"x")
        assert list(log.batch_ids()) == []
        assert not store().buckets[path.url.split("/")[2]].keys


FIRST_ANSWERS = pytest.mark.parametrize("only", ["probe", "/0"])
"""Of the object that shows what the storage can do, and of the first entry."""


@FIRST_ANSWERS
def test_a_put_whose_answer_was_lost_is_a_win(s3, only):
    """The client retries such a request, and finds its own object."""
    with storage_behind(s3) as (proxy, path):
        log = FsspecMetadataLog(path)
        with proxy.behaving(Behavior((Failure.LOST_RESPONSE,), only=only, max_failures=1)):
            assert log.add(0, b"ours")
        assert not log.add(0, b"theirs")
        assert log.get(0) == b"ours"


@FIRST_ANSWERS
def test_a_conflict_is_no_loss(s3, only):
    """S3 may report a concurrent request, and the put is retried."""
    with storage_behind(s3) as (proxy, path):
        log = FsspecMetadataLog(path)
        with proxy.behaving(Behavior((Failure.CONFLICT,), only=only, max_failures=1)):
            assert log.add(0, b"x")
        assert not log.add(0, b"y")


def test_a_secret_is_in_no_message(s3):
    mistaken = {"endpoint_url": "proxy:hush-hush@127.0.0.1:1"}
    options = json.loads(s3.storage_options) | mistaken
    log = FsspecMetadataLog(StoragePath("s3://bucket/log", json.dumps(options)))
    with pytest.raises(MetadataLogError, match=r"Invalid endpoint.*127\.0\.0\.1:1") as failure:
        log.get(0)
    assert "hush" not in str(failure.value)


def test_a_storage_that_is_gone_is_reported_in_one_line(s3):
    gone = {"endpoint_url": "http://127.0.0.1:1", "config_kwargs": {"retries": {"max_attempts": 0}}}
    options = json.loads(s3.storage_options) | gone
    log = FsspecMetadataLog(StoragePath("s3://bucket/log", json.dumps(options)))
    with pytest.raises(MetadataLogError, match=r"does not answer.*http://127\.0\.0\.1:1"):
        log.get(0)
