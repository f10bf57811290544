from pathlib import Path

import pytest

from pyspark_kafka.brokers.errors import JavaError
from pyspark_kafka.brokers.java import major_version, require_java


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("1.8.0_292", 8),
        ("1.7.0", 7),
        ("9", 9),
        ("11.0.2", 11),
        ("17.0.15", 17),
        ("21", 21),
        ("25-ea", 25),
    ],
)
def test_the_major_version_is_found_in_old_and_new_versions(version, major):
    assert major_version(f'openjdk version "{version}" 2025-04-15\nOpenJDK Runtime') == major


@pytest.mark.parametrize("answer", ["", "Unable to locate a Java Runtime.", 'version "x"'])
def test_an_output_without_a_version_has_no_major_version(answer):
    assert major_version(answer) is None


def fake_java(home: Path, answer: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    java.chmod(0o755)
    return java


def test_java_home_comes_first(tmp_path, monkeypatch):
    java = fake_java(tmp_path / "home", 'openjdk version "17.0.15" 2025-04-15')
    other = fake_java(tmp_path / "other", 'openjdk version "21"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(other.parent))
    assert require_java() == java


def test_without_java_home_the_first_java_on_the_path_is_used(tmp_path, monkeypatch):
    java = fake_java(tmp_path, 'openjdk version "25-ea" 2025-09-16')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent))
    assert require_java(25) == java


def test_the_error_for_an_old_java_has_its_version(tmp_path, monkeypatch):
    java = fake_java(tmp_path, 'java version "1.8.0_292"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError) as raised:
        require_java()
    assert str(raised.value) == (
        f"[JAVA_NOT_USABLE] Java 17 or newer is required, but {java} is Java 8. "
        "Install a JDK 17, or set JAVA_HOME to one."
    )


def test_a_path_without_java_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match="there is no java on the PATH"):
        require_java()


def test_a_java_home_without_java_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="which has no bin/java"):
        require_java()


def test_a_java_without_a_version_is_an_error(tmp_path, monkeypatch):
    fake_java(tmp_path, "Unable to locate a Java Runtime.")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="does not print its version"):
        require_java()
