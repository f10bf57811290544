"""Real schema registries on loopback ports: Apicurio, whose API includes Confluent's."""

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from pyspark_kafka.brokers.jars import Artifact, JarSet, resolve
from pyspark_kafka.brokers.java import require_java
from pyspark_kafka.brokers.settings import free_ports

from .java_server import SMALL_JVM, running

_VERSION: Final = "3.0.9"
_OLDER: Final = "2.6.13.Final"


@contextmanager
def run_apicurio(version: str = _VERSION) -> Iterator[str]:
    """Run Apicurio, which keeps its schemas in memory; yield the base URL of Confluent's API."""
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    command = [
        str(require_java()),
        *SMALL_JVM,
        "-Dquarkus.http.host=127.0.0.1",
        f"-Dquarkus.http.port={port}",
        "-jar",
        str(_unpacked(version) / f"apicurio-registry-app-{version}-runner.jar"),
    ]
    with (
        tempfile.TemporaryDirectory(prefix="pyspark-kafka-apicurio-") as directory,
        running("Apicurio", {"apicurio": command}, Path(directory), lambda: _answers(url)),
    ):
        yield url


def run_older_apicurio() -> AbstractContextManager[str]:
    """Run Apicurio 2.6 as ``run_apicurio`` runs Apicurio 3."""
    return run_apicurio(_OLDER)


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/subjects", timeout=30):  # noqa: S310 - a server of ours
            return True
    except OSError:
        return False


def _unpacked(version: str) -> Path:
    """Return the directory of the unpacked archive, after unpacking it if there is none."""
    archive = Artifact("io.apicurio", "apicurio-registry-app", version, "tar.gz", "all")
    directory = resolve(JarSet(f"apicurio-{version}", (archive,), transitive=False, has_poms=False))
    unpacked = directory / "unpacked"
    if not unpacked.is_dir():
        part = Path(tempfile.mkdtemp(prefix="part-", dir=directory))
        with tarfile.open(directory / archive.file_name) as content:
            content.extractall(part, filter="data")
        try:
            part.replace(unpacked)
        except OSError:  # another process was faster
            shutil.rmtree(part, ignore_errors=True)
    return unpacked
