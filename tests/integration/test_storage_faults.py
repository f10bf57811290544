"""Metadata logs on storages that fail, lose responses, and answer with old lists."""

from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from pyspark_kafka.adapters.checkpoints import hdfs as hdfs_directory
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError

from ..servers.small_disk import can_mount, mounted_at
from ..servers.storage_proxy import Behavior, Failure, storage_behind

OLD_LISTS = Behavior(list_delay_s=60.0)


@pytest.fixture(params=["s3", "hdfs"])
def storage(request):
    with storage_behind(request.getfixturevalue(request.param)) as found:
        yield found


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(hdfs_directory, "_PAUSES_S", (0.01,) * 4)


def test_a_new_driver_finds_an_entry_that_is_not_listed(storage):
    """The last entry is found by its name, also if nothing is listed, and is not written twice."""
    proxy, path = storage
    log = FsspecMetadataLog(path)
    assert log.latest() is None
    with proxy.behaving(OLD_LISTS):
        for number in range(3):
            assert log.add(number, b"%d" % number)
            assert log.latest() == (number, b"%d" % number)
        assert proxy.stale > 0
        other = FsspecMetadataLog(path)
        assert list(other.batch_ids()) == []
        assert other.latest() == (2, b"2")
        assert not other.add(2, b"again")
        assert log.add(3, b"3")
        assert not other.add(3, b"of another driver")
        assert other.latest() == (3, b"3")


def test_deleted_entries_may_stay_listed(storage):
    proxy, path = storage
    log = FsspecMetadataLog(path)
    for number in range(4):
        log.add(number, b"%d" % number)
    assert len(log.batch_ids()) == 4
    with proxy.behaving(OLD_LISTS):
        log.purge(3)
        assert list(log.batch_ids()) == [0, 1, 2, 3]
        assert log.latest() == (3, b"3")
    assert list(log.batch_ids()) == [3]


def test_a_write_whose_response_is_lost(storage):
    proxy, path = storage
    log = FsspecMetadataLog(path)
    log.add(0, b"0")
    is_hdfs = path.url.startswith("webhdfs")
    lost = Behavior((Failure.LOST_RESPONSE,), only="op=RENAME" if is_hdfs else "/1", max_failures=1)
    with proxy.behaving(lost):
        assert log.add(1, b"1")
    assert not log.add(1, b"again")
    assert FsspecMetadataLog(path).latest() == (1, b"1")


@pytest.mark.parametrize("failure", [Failure.SLOW_DOWN, Failure.RESET])
def test_a_write_that_is_refused(storage, failure):
    proxy, path = storage
    log = FsspecMetadataLog(path)
    log.add(0, b"0")
    with proxy.behaving(Behavior((failure,), only="PUT", max_failures=1)):
        assert log.add(1, b"1")
    assert log.latest() == (1, b"1")


@pytest.mark.parametrize("failure", [Failure.SLOW_DOWN, Failure.RESET])
@pytest.mark.parametrize("only", ["op=CREATE", "op=RENAME", "namenoderpcaddress"])
def test_each_request_of_a_write_to_hdfs_is_repeated(hdfs, failure, only):
    with storage_behind(hdfs) as (proxy, path):
        log = FsspecMetadataLog(path)
        with proxy.behaving(Behavior((failure,), only=only, max_failures=2)):
            assert log.add(0, b"0")
        assert hdfs.names(urlsplit(path.url).path) == ["0"]
        assert log.get(0) == b"0"


@pytest.mark.parametrize("failure", [Failure.SLOW_DOWN, Failure.RESET])
def test_reads_lists_and_deletions_of_hdfs_are_repeated(hdfs, failure):
    with storage_behind(hdfs) as (proxy, path):
        log = FsspecMetadataLog(path)
        log.add(0, b"0")
        log.add(1, b"1")
        for only in ("op=OPEN", "op=LISTSTATUS"):
            with proxy.behaving(Behavior((failure,), only=only, max_failures=2)):
                assert FsspecMetadataLog(path).latest() == (1, b"1")
        with proxy.behaving(Behavior((failure,), only="op=DELETE", max_failures=2)):
            log.purge(1)
        assert list(log.batch_ids()) == [1]
        with proxy.behaving(Behavior((failure,))), pytest.raises(MetadataLogError):
            log.get(1)


@pytest.mark.parametrize("only", ["op=CREATE", "op=RENAME", "op=OPEN"])
def test_a_safe_mode_is_waited_out(hdfs, only, monkeypatch):
    """It lasts longer than other failures, of which five in a row are too many."""
    monkeypatch.setattr(hdfs_directory, "_SAFE_MODE_PAUSE_S", 0.01)
    with storage_behind(hdfs) as (proxy, path):
        log = FsspecMetadataLog(path)
        with proxy.behaving(Behavior((Failure.SAFE_MODE,), only=only, max_failures=20)):
            assert log.add(0, b"0")
            assert FsspecMetadataLog(path).latest() == (0, b"0")
        assert hdfs.names(urlsplit(path.url).path) == ["0"]


def test_a_repeated_rename_does_not_take_another_drivers_entry_for_its_own(hdfs, monkeypatch):
    """Another driver writes the entry between a rename that failed and its repetition."""
    with storage_behind(hdfs) as (proxy, path):
        log, other = FsspecMetadataLog(path), FsspecMetadataLog(path)
        added: list[bool] = []
        pause = SimpleNamespace(sleep=lambda _seconds: added.append(other.add(0, b"other")))
        monkeypatch.setattr(hdfs_directory, "time", pause)
        with proxy.behaving(Behavior((Failure.SLOW_DOWN,), only="op=RENAME", max_failures=1)):
            assert not log.add(0, b"mine")
        assert added == [True]
        assert log.get(0) == b"other"
        assert hdfs.names(urlsplit(path.url).path) == ["0"]


@pytest.mark.skipif(not can_mount(), reason="this user may not mount a small disk")
def test_a_full_disk_loses_no_entry(tmp_path):
    with mounted_at(tmp_path, 1) as disk:
        log = FsspecMetadataLog(StoragePath(str(tmp_path)))
        log.add(0, b"0")
        large = b"1" * 20_000
        for free_pages in (0, 1, 3):
            disk.fill(free_pages)
            with pytest.raises(MetadataLogError, match="No space left on device"):
                log.add(1, large)
            assert FsspecMetadataLog(StoragePath(str(tmp_path))).latest() == (0, b"0")
            disk.make_room()
        assert log.add(1, large)
        assert log.latest() == (1, large)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["0", "1"]
