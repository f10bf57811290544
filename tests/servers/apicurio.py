"""A real schema registry on a loopback port: Apicurio, whose API includes Confluent's."""

import shutil
import tarfile
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from pyspark_kafka.brokers.errors import BrokerStartError
from pyspark_kafka.brokers.jars import Artifact, JarSet, resolve
from pyspark_kafka.brokers.java import JavaProcess, require_java
from pyspark_kafka.brokers.settings import free_ports

_VERSION: Final = "3.0.9"
_ARCHIVE: Final = Artifact("io.apicurio", "apicurio-registry-app", _VERSION, "tar.gz", "all")
_JARS: Final = JarSet(f"apicurio-{_VERSION}", (_ARCHIVE,), transitive=False, has_poms=False)

_START_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.1
_JAVA_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
)


class Apicurio:
    """A context manager that runs Apicurio, which keeps its schemas until the context ends.

    The process ends with this one, even when it is killed.
    """

    def __init__(self) -> None:
        [self._port] = free_ports(1)

    @property
    def url(self) -> str:
        """The base URL of Confluent's API."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def __enter__(self) -> str:
        self._root = Path(tempfile.mkdtemp(prefix="pyspark-kafka-apicurio-"))
        try:
            self.start()
        except BaseException:
            shutil.rmtree(self._root, ignore_errors=True)
            raise
        return self.url

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._root, ignore_errors=True)

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        command = [
            str(require_java()),
            *_JAVA_OPTIONS,
            "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={self._port}",
            # Schemas that it has confirmed are there when it is started again after a kill.
            f"-Dapicurio.datasource.url=jdbc:h2:file:{self._root}/schemas;WRITE_DELAY=0",
            "-jar",
            str(_unpacked() / f"{_ARCHIVE.name}-{_VERSION}-runner.jar"),
        ]
        self._process = JavaProcess(command, self._root, self._root / "apicurio.log")
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if not self._process.running:
                raise BrokerStartError("Apicurio ended by itself", self._process.log)
            if time.monotonic() > deadline:
                what = f"Apicurio did not answer within {_START_SECONDS:g} s"
                self.kill()
                raise BrokerStartError(what, self._process.log)
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self._process.kill()

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/subjects", timeout=30):  # noqa: S310 - a server of ours
                return True
        except (URLError, OSError):
            return False


def _unpacked() -> Path:
    """Return the directory of the unpacked archive, after unpacking it if there is none."""
    directory = resolve(_JARS)
    unpacked = directory / "unpacked"
    if not unpacked.is_dir():
        part = Path(tempfile.mkdtemp(prefix="part-", dir=directory))
        with tarfile.open(directory / _ARCHIVE.file_name) as archive:
            archive.extractall(part, filter="data")
        try:
            part.replace(unpacked)
        except OSError:  # another process was faster
            shutil.rmtree(part, ignore_errors=True)
    return unpacked
