"""Fixtures for tests of several adapters."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from pyspark_kafka.adapters.spark.spark_api import HAS_READ_LIMITS

collect_ignore = [] if HAS_READ_LIMITS else ["spark/test_stream_reader.py"]
"""Tests of interfaces that the installed Spark does not have."""

PASSWORD: Final = "store-secret"  # noqa: S105


class CloseError(Exception):
    """An error that a close raises."""


@contextmanager
def broken_parts(owner: object, *names: str) -> Iterator[list[str]]:
    """Replace parts meanwhile; yield the names of those that are closed, each with an error."""
    closed: list[str] = []

    def close(name: str, *_: object) -> None:
        closed.append(name)
        raise CloseError

    parts = {name: getattr(owner, name) for name in names}
    for name in names:
        closing = partial(close, name)
        setattr(owner, name, SimpleNamespace(close=closing, __exit__=closing))
    yield closed
    for name, part in parts.items():
        setattr(owner, name, part)


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Make a keystore and a truststore that trusts it, as PKCS12 and as JKS."""
    directory = tmp_path_factory.mktemp("stores")
    for kind, suffix in (("PKCS12", "p12"), ("JKS", "jks")):
        keytool(
            directory,
            *("-genkeypair", "-alias", "me", "-keyalg", "EC", "-dname", "CN=me"),
            *("-keystore", f"key.{suffix}", "-storetype", kind, "-keypass", PASSWORD),
        )
        exported = ("-exportcert", "-alias", "me", "-file", "me.pem", "-rfc")
        keytool(directory, *exported, "-keystore", f"key.{suffix}")
        imported = ("-importcert", "-alias", "me", "-file", "me.pem")
        keytool(directory, *imported, "-keystore", f"trust.{suffix}", "-storetype", kind)
    return directory


def keytool(directory: Path, *arguments: str) -> None:
    """Run Java's ``keytool`` with the password of the stores."""
    command = ["keytool", *arguments, "-storepass", PASSWORD, "-noprompt"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
