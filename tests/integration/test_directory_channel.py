"""The channel in a directory on real storages, and files that are not what they should be."""

import os
import time
from collections.abc import Iterator

import pytest

from pyspark_kafka.adapters.checkpoints.directory import LogFile
from pyspark_kafka.adapters.checkpoints.local import LocalDirectory
from pyspark_kafka.adapters.checkpoints.storages import MemoryDirectory, opener_of
from pyspark_kafka.adapters.continuous.directory_channel import (
    DirectoryEpochChannel,
    DirectoryTaskChannel,
    SignedFiles,
    digest_of,
    message_name,
)
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.messages import (
    StopTask,
    TaskDrained,
    TaskId,
    TaskMessage,
    TaskStarted,
    write_message,
)
from pyspark_kafka.domain.errors import DriverLostError, MetadataLogError
from pyspark_kafka.testing import await_until

TASK, OTHER = TaskId(1, 0, "0.0"), TaskId(1, 1, "1.0")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "channel"


@pytest.fixture
def channel(path):
    channel = DirectoryEpochChannel(StoragePath(str(path)))
    yield channel
    channel.close()


def numbered(number: int) -> TaskMessage:
    return TaskStarted(TASK, "host", number)


def receive(channel: DirectoryEpochChannel, messages: int) -> list[TaskMessage]:
    received: list[TaskMessage] = []

    def has_all() -> bool:
        received.extend(channel.receive(0.1))
        return len(received) >= messages

    await_until(has_all)
    return received


def write(channel: DirectoryEpochChannel, name: str, payload: bytes) -> None:
    path = StoragePath(channel.address.location)
    SignedFiles(opener_of(path)(), channel.address.key).write(name, payload)


def test_a_query_on_each_storage(storage):
    channel = DirectoryEpochChannel(storage, heartbeat_interval_s=0.5)
    task = DirectoryTaskChannel(channel.address, TASK, driver_timeout_s=10.0)
    for number in range(5):
        task.send(numbered(number))
    assert receive(channel, 5) == [numbered(number) for number in range(5)]
    for _ in range(2):
        channel.send(TASK, StopTask())
    commands: list[object] = []

    def has_both() -> bool:
        commands.extend(task.receive())
        return len(commands) == 2

    await_until(has_both)
    channel.close()
    with pytest.raises(DriverLostError, match="closed the channel"):
        await_until(lambda: bool(task.receive()))
    task.close()
    left = [file.name for file in opener_of(storage)().files() if "probe" not in file.name]
    assert left == []


def test_files_of_strangers_are_removed(channel, path, caplog):
    """A file without the right MAC changes nothing, under any name; it is logged once."""
    write(channel, message_name(digest_of(OTHER), 0), write_message(TaskDrained(OTHER)).encode())
    assert receive(channel, 1) == [TaskDrained(OTHER)]
    [driver] = path.glob("*.driver.channel")
    forged = [
        path / driver.name.replace("driver", message_name(digest_of(TASK), number))
        for number in (0, 1)
    ]
    for file in forged:
        file.write_bytes(b"m" * 32 + write_message(TaskDrained(TASK)).encode())
        await_until(lambda: not forged[0].exists())
    task = DirectoryTaskChannel(channel.address, TASK)
    for number in range(3):
        task.send(numbered(number))
        assert receive(channel, 1) == [numbered(number)]
    assert len(caplog.messages) == 2
    assert all(line.startswith("Removed a file that is not from") for line in caplog.messages)
    assert not any("TaskDrained" in line for line in caplog.messages)
    task.close()


def test_a_file_cannot_take_the_place_of_another(channel, path):
    other = SignedFiles(opener_of(StoragePath(str(path)))(), channel.address.key)
    other.write("copied", write_message(TaskDrained(TASK)).encode())
    [copied] = path.glob("*.copied.channel")
    copy = path / copied.name.replace("copied", message_name(digest_of(TASK), 0))
    copied.rename(copy)
    await_until(lambda: not copy.exists())
    assert list(channel.receive(0.3)) == []


@pytest.mark.parametrize("payload", [b"{", b"\xff", b"[" * 100_000, b'{"type":[]}'])
def test_malformed_messages_are_dropped(payload, channel, caplog):
    message = write_message(numbered(1)).encode()
    for number in range(2):
        write(channel, message_name(digest_of(TASK), number), payload + b"\n" + message)
    assert receive(channel, 2) == [numbered(1)] * 2
    assert caplog.messages == ["Dropped a malformed message of a task"] * 2


def test_a_file_that_is_listed_late_is_awaited(channel, path):
    """A later file is not received before an earlier one."""
    texts = [write_message(numbered(number)).encode() for number in range(3)]
    for number in (2, 1):
        write(channel, message_name(digest_of(TASK), number), texts[number])
    assert list(channel.receive(0.5)) == []
    write(channel, message_name(digest_of(TASK), 0), texts[0])
    assert receive(channel, 3) == [numbered(number) for number in range(3)]
    await_until(lambda: [file.name.split(".")[1] for file in path.iterdir()] == ["driver"])


def test_a_file_that_is_listed_after_its_removal_is_received_once(channel, path):
    """Its number has been."""
    text = write_message(numbered(0)).encode()
    for _ in range(3):
        write(channel, message_name(digest_of(TASK), 0), text)
        await_until(lambda: not any(path.glob("*.message.*")))
    assert list(channel.receive(0)) == [numbered(0)]


def test_a_storage_that_fails_for_a_while_loses_nothing(fresh_name, monkeypatch, caplog):
    path = StoragePath(f"memory://{fresh_name()}/channel")
    channel = DirectoryEpochChannel(path)
    task = DirectoryTaskChannel(channel.address, TASK)
    task.send(numbered(0))
    assert receive(channel, 1) == [numbered(0)]

    def fail(*_arguments: object) -> Iterator[LogFile]:
        raise ConnectionError("no route to the storage")

    with monkeypatch.context() as failing:
        for name in ("create", "files", "read"):
            failing.setattr(MemoryDirectory, name, fail)
        for number in (1, 2, 3):
            task.send(numbered(number))
            channel.send(TASK, StopTask())
            assert list(channel.receive(0.2)) == []
            assert list(task.receive()) == []
        await_until(lambda: len(caplog.messages) == 2)
    assert receive(channel, 3) == [numbered(number) for number in (1, 2, 3)]
    await_until(lambda: bool(task.receive()))
    assert len(caplog.messages) == 2
    assert all("The storage does not answer" in line for line in caplog.messages)
    task.close()
    channel.close()


def test_a_driver_without_a_directory_fails_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(MetadataLogError, match="The storage failed"):
        DirectoryEpochChannel(StoragePath(f"{tmp_path}/file/channel"))


def test_credentials_are_not_shown():
    """The URL and the options may contain them."""
    channel = DirectoryEpochChannel(
        StoragePath("memory://user:secret@host/channel", '{"token": "hidden"}')
    )
    task = DirectoryTaskChannel(channel.address, TASK)
    for shown in (channel, channel.address, task):
        assert "secret" not in repr(shown)
        assert "hidden" not in repr(shown)
    task.close()
    channel.close()


def test_files_of_killed_channels_are_removed_after_a_day(path):
    old = DirectoryEpochChannel(StoragePath(str(path)))
    [driver] = path.iterdir()
    killed = path / f"{'a' * 32}.driver.channel"
    killed.touch()
    (path / "12").touch()
    (path / f"{'b' * 32}.driver.channel").touch()
    day_ago = time.time() - 24 * 60 * 60 - 1
    for each in (killed, path / "12"):
        os.utime(each, (day_ago, day_ago))
    DirectoryEpochChannel(StoragePath(str(path))).close()
    assert {each.name[:2] for each in path.iterdir()} == {"12", "bb", driver.name[:2]}
    old.close()


def test_a_channel_that_is_a_day_old_is_kept_while_its_driver_lives(path):
    """Its first file is as old as the query; another channel may be opened and closed meanwhile."""
    living = DirectoryEpochChannel(StoragePath(str(path)), heartbeat_interval_s=0)
    task = DirectoryTaskChannel(living.address, TASK)
    await_until(lambda: bool(list(path.glob("[!.]*.beat.*.channel"))))
    [driver] = path.glob("*.driver.channel")
    day_ago = time.time() - 24 * 60 * 60 - 1
    os.utime(driver, (day_ago, day_ago))
    DirectoryEpochChannel(StoragePath(str(path))).close()
    assert driver.exists()
    living.close()
    await_until(lambda: not list(path.iterdir()))
    task.close()


def test_a_heartbeat_that_is_replaced_during_a_listing_is_not_missed(channel, path, monkeypatch):
    """A listing may have neither the old one nor the new one; the next listing has one."""
    [driver] = path.iterdir()
    old, new = LogFile(driver.name, 1.0), LogFile(driver.name.replace("driver", "beat.9"), None)
    listings = iter([[old], [old, new]])
    monkeypatch.setattr(LocalDirectory, "files", lambda _: iter(next(listings)))
    SignedFiles(LocalDirectory(path), b"key").remove_abandoned()
    assert driver.exists()
    assert channel.address.location == str(path)
