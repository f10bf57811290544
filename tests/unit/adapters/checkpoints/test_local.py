import errno
import os
import time
from types import SimpleNamespace

import pytest

from pyspark_kafka.adapters.checkpoints import local, metadata_log
from pyspark_kafka.adapters.checkpoints.directory import temporary_name
from pyspark_kafka.adapters.checkpoints.local import rename_exclusively
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError, UnsupportedFeatureError

DAY_SECONDS = 24 * 60 * 60


@pytest.fixture
def log(tmp_path):
    return FsspecMetadataLog(StoragePath(str(tmp_path)))


@pytest.fixture
def no_links(monkeypatch):
    """Simulate a filesystem without hard links, like FAT and some FUSE ones."""

    def link(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)


def test_other_files_are_left_alone(log, tmp_path):
    (tmp_path / "5").mkdir()
    for name in ("1.compact", ".9.crc", ".0.0f5b.tmp", "metadata"):
        (tmp_path / name).write_bytes(b"other")
    log.add(2, b"two")
    assert (log.latest(), list(log.batch_ids()), log.get(5)) == ((2, b"two"), [2], None)
    log.purge(100)
    assert sorted(os.listdir(tmp_path)) == [".0.0f5b.tmp", ".9.crc", "1.compact", "5", "metadata"]


def test_a_named_pipe_in_the_place_of_a_batch_is_an_error(log, tmp_path):
    """Reading it would wait for ever."""
    os.mkfifo(tmp_path / "0")
    with pytest.raises(MetadataLogError, match="it is not a regular file"):
        log.get(0)


def test_the_numbers_of_batches_are_javas_longs(log, tmp_path):
    (tmp_path / str(2**63)).write_bytes(b"other")
    assert log.latest() is None
    with pytest.raises(MetadataLogError, match="the last entry that it can have"):
        log.add(2**63, b"more")


def test_nothing_but_the_batch_remains(log, tmp_path):
    log.add(0, b"first")
    log.add(0, b"second")
    assert os.listdir(tmp_path) == ["0"]


def test_the_umask_decides_who_reads(log, tmp_path):
    """The JVM may run as another user than the writer of a batch."""
    before = os.umask(0o022)
    try:
        log.add(0, b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "0").stat().st_mode & 0o777 == 0o644


def test_a_replaced_file_keeps_its_permissions(log, tmp_path):
    log.add(0, b"old")
    (tmp_path / "0").chmod(0o664)
    umask = os.umask(0o077)
    try:
        log.replace(0, b"new")
    finally:
        os.umask(umask)
    assert (tmp_path / "0").stat().st_mode & 0o777 == 0o664


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_files_of_root_belong_to_the_owner_of_the_directory(tmp_path):
    (tmp_path / "query").mkdir()
    os.chown(tmp_path / "query", 65_534, 65_533)
    log = FsspecMetadataLog(StoragePath(str(tmp_path / "query" / "backups")))
    log.add(0, b"old")
    log.add(1, b"new")
    log.replace(0, b"new")
    found = [tmp_path / "query" / "backups", *(tmp_path / "query" / "backups").iterdir()]
    assert {(each.stat().st_uid, each.stat().st_gid) for each in found} == {(65_534, 65_533)}
    assert len(found) == 3


def test_checksums_go_with_their_batch(log, tmp_path):
    """Hadoop's checksum of a deleted file would make a later one unreadable."""
    for name in (".0.crc", ".1.crc"):
        (tmp_path / name).write_bytes(b"crc\0")
    (tmp_path / "0").write_bytes(b"of the JVM")
    log.purge(1)
    log.add(1, b"ours")
    assert os.listdir(tmp_path) == ["1"]


def test_checksums_of_the_winner_are_left(log, tmp_path):
    (tmp_path / "0").write_bytes(b"of the JVM")
    (tmp_path / ".0.crc").write_bytes(b"crc\0")
    assert not log.add(0, b"ours")
    assert sorted(os.listdir(tmp_path)) == [".0.crc", "0"]


@pytest.mark.parametrize("sweep", ["add", "purge"])
def test_files_of_killed_writers_are_deleted_after_a_day(log, tmp_path, sweep):
    young, old = (tmp_path / temporary_name("3") for _ in range(2))
    for path in (young, old):
        path.write_bytes(b"half")
    os.utime(old, (0, time.time() - DAY_SECONDS - 60))
    os.utime(young, (0, time.time() - DAY_SECONDS + 60))
    log.add(0, b"x") if sweep == "add" else log.purge(0)
    assert (young.exists(), old.exists()) == (True, False)


def test_a_clock_an_hour_ahead_deletes_no_file_of_a_running_writer(log, tmp_path, monkeypatch):
    """A storage has its own clock."""
    running = tmp_path / temporary_name("3")
    running.write_bytes(b"half")
    clock = SimpleNamespace(time=lambda: running.stat().st_mtime + 3_600)
    monkeypatch.setattr(metadata_log, "time", clock)
    log.add(0, b"x")
    log.purge(0)
    assert running.exists()


@pytest.mark.usefixtures("no_links")
def test_a_filesystem_without_links_renames(log, tmp_path):
    assert log.add(0, b"first")
    assert not log.add(0, b"second")
    assert (log.get(0), os.listdir(tmp_path)) == (b"first", ["0"])


def test_an_exclusive_rename_replaces_nothing(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"new")
    target.write_bytes(b"old")
    assert not rename_exclusively(source, target)
    assert (source.read_bytes(), target.read_bytes()) == (b"new", b"old")
    target.unlink()
    assert rename_exclusively(source, target)
    assert (source.exists(), target.read_bytes()) == (False, b"new")


def test_a_rename_of_nothing_fails(tmp_path):
    with pytest.raises(FileNotFoundError):
        rename_exclusively(tmp_path / "none", tmp_path / "target")


@pytest.mark.usefixtures("no_links")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_a_filesystem_without_either_is_refused(log, tmp_path, monkeypatch, number):
    monkeypatch.setattr(local, "_rename", lambda *_: number)
    with pytest.raises(UnsupportedFeatureError, match="neither hard links nor exclusive renames"):
        log.add(0, b"x")
    assert os.listdir(tmp_path) == []


def test_a_link_whose_answer_was_lost_is_a_win(log, monkeypatch):
    """An NFS server may report a link that it has created itself as existing."""
    link = os.link

    def link_twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    assert log.add(0, b"x")


def test_a_link_that_fails_is_no_loss(log, monkeypatch):
    def link(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(MetadataLogError, match="No space left on device"):
        log.add(0, b"x")
    assert log.get(0) is None


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    log = FsspecMetadataLog(StoragePath(f"{tmp_path}/file"))
    for call in (lambda: log.get(0), lambda: log.add(0, b""), log.latest, lambda: log.purge(1)):
        with pytest.raises(MetadataLogError, match=r"NotADirectory|FileExists"):
            call()


@pytest.mark.parametrize(("listed", "latest"), [([0, 1, 2, 3], (1, b"1")), ([2, 3], None)])
def test_batches_deleted_since_the_listing_are_skipped(log, monkeypatch, listed, latest):
    for batch_id in (0, 1):
        log.add(batch_id, b"%d" % batch_id)
    monkeypatch.setattr(FsspecMetadataLog, "batch_ids", lambda _: listed)
    assert log.latest() == (1, b"1")
    assert FsspecMetadataLog(StoragePath(str(log))).latest() == latest


def test_thousands_of_batches_are_listed(log, tmp_path):
    for batch_id in range(3_000):
        (tmp_path / str(batch_id)).write_bytes(b"%d" % batch_id)
    assert log.latest() == (2_999, b"2999")
    log.purge(2_990)
    assert list(log.batch_ids()) == list(range(2_990, 3_000))
