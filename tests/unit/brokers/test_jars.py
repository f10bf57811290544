"""The archive of the classes that Kafka's brokers load."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyspark_kafka.brokers.errors import BrokerStartError, JarsError
from pyspark_kafka.brokers.jars import archive_options, archive_path, cache_directory, make_once


def written_to(options: Sequence[str]) -> Path:
    """Return the file to which Java would write an archive."""
    return Path(options[0].removeprefix("-XX:ArchiveClassesAtExit="))


def test_an_archive_is_made_once(tmp_path):
    archive = tmp_path / "classes.jsa"
    runs = []

    def run(options: Sequence[str]) -> None:
        assert not archive.exists()
        assert not written_to(options).exists()
        written_to(options).write_text("classes")
        runs.append(options)

    written_to([str(archive.with_suffix(".part"))]).write_text("left by a process that was killed")
    make_once(archive, run)
    make_once(archive, run)
    assert archive.read_text() == "classes"
    assert len(runs) == 1


@pytest.mark.parametrize("error", [None, BrokerStartError("the broker ended", Path("log"))])
def test_brokers_start_without_an_archive(tmp_path, error):
    def run(_: Sequence[str]) -> None:
        if error:
            raise error

    make_once(tmp_path / "classes.jsa", run)
    assert not (tmp_path / "classes.jsa").exists()


def test_an_archive_is_for_one_java(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "cache"))
    java = tmp_path / "java"
    paths = []
    for answer in ("17.0.1", "17.0.2"):
        java.write_text(f"#!/bin/sh\necho {answer}\n")
        java.chmod(0o755)
        paths += [archive_path(version, java) for version in ("3.9.1", "4.3.1")]
    assert len(set(paths)) == len(paths)
    assert {path.parent for path in paths} == {tmp_path / "cache"}


def test_java_says_nothing_about_an_archive(tmp_path):
    assert archive_options(tmp_path / "a.jsa") == (
        f"-XX:SharedArchiveFile={tmp_path}/a.jsa",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    )


def test_a_user_without_a_home_is_asked_for_a_directory(monkeypatch):
    """As in a container whose user has a number only."""
    monkeypatch.delenv("PYSPARK_KAFKA_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_123)
    with pytest.raises(JarsError, match=r"home directory.*\n.*variable PYSPARK_KAFKA_CACHE"):
        cache_directory()


def test_a_directory_that_cannot_be_made_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(JarsError, match=r"file/cache.*\n.*variable PYSPARK_KAFKA_CACHE"):
        cache_directory()
