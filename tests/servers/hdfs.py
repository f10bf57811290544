"""A real HDFS on loopback ports: one NameNode, one DataNode."""

import getpass
import json
import shutil
import tempfile
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from pyspark_kafka.brokers.errors import BrokerStartError
from pyspark_kafka.brokers.jars import Artifact, JarSet, resolve
from pyspark_kafka.brokers.java import JavaProcess, require_java
from pyspark_kafka.brokers.settings import free_ports

_START_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.1
_NAME_NODE: Final = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE: Final = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_JAXB: Final = (Artifact("javax.xml.bind", "jaxb-api", "2.3.1"),)
"""What the Jersey of Hadoop 3.4 needs, and neither Java 17 nor PySpark has."""
_JAVA_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
)


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A running HDFS: where it listens, and what tests do to it without a client."""

    name_port: int
    http_port: int

    @property
    def url(self) -> str:
        """The root over WebHDFS, without a slash at its end."""
        return f"webhdfs://127.0.0.1:{self.http_port}"

    @property
    def native_url(self) -> str:
        """The root over Hadoop's own protocol, which the JVM speaks."""
        return f"hdfs://127.0.0.1:{self.name_port}"

    def write(self, path: str, content: bytes) -> None:
        """Write a file, or replace it."""
        answer = self.request("PUT", path, "op=CREATE&overwrite=true&noredirect=true")
        _send("PUT", answer["Location"], content)

    def touch(self, path: str, modified: int) -> None:
        """Set when a file was written, in milliseconds since the epoch."""
        self.request("PUT", path, f"op=SETTIMES&modificationtime={modified}")

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory."""
        statuses = self.request("GET", path, "op=LISTSTATUS")["FileStatuses"]["FileStatus"]
        return sorted(status["pathSuffix"] for status in statuses)

    def request(self, method: str, path: str, query: str) -> Any:
        """Send a request of WebHDFS, and return its JSON."""
        url = f"http://127.0.0.1:{self.http_port}/webhdfs/v1{path}?{query}&user.name={getpass.getuser()}"
        return json.loads(_send(method, url, None) or b"null")


class HdfsCluster:
    """A context manager that runs HDFS, in the version of the Hadoop that PySpark carries.

    The user who started it is its superuser, other users are held to permissions, and there is no
    authentication. The processes end with this one, even when it is killed.
    """

    def __enter__(self) -> Hdfs:
        self._root = Path(tempfile.mkdtemp(prefix="pyspark-kafka-hdfs-"))
        self._processes: list[JavaProcess] = []
        name_port, http_port, *self._data_ports = free_ports(5)
        self._hdfs = Hdfs(name_port, http_port)
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self._hdfs

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def _start(self) -> None:
        jars = Path(str(files("pyspark"))) / "jars"
        # Everything but the servers comes with PySpark: its Hadoop client, and a logger.
        servers = resolve(_servers(jars))
        self._write_configuration()
        classes = f"{self._root}:{servers}/*:{jars}/*"
        java = [str(require_java()), *_JAVA_OPTIONS, "-cp", classes]
        formatting = self._java([*java, _NAME_NODE, "-format", "-nonInteractive"], "format.log")
        if formatting.wait(_START_SECONDS) != 0:
            raise BrokerStartError("HDFS was not formatted", formatting.log)
        self._processes = [
            self._java([*java, _NAME_NODE], "namenode.log"),
            self._java([*java, _DATA_NODE], "datanode.log"),
        ]
        self._await_ready()

    def _java(self, command: list[str], log: str) -> JavaProcess:
        return JavaProcess(command, self._root, self._root / log)

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
        shutil.rmtree(self._root, ignore_errors=True)

    def _write_configuration(self) -> None:
        data, data_http, data_ipc = self._data_ports
        core = {"fs.defaultFS": self._hdfs.native_url, "hadoop.tmp.dir": str(self._root / "tmp")}
        hdfs = {
            "dfs.namenode.name.dir": str(self._root / "name"),
            "dfs.datanode.data.dir": str(self._root / "data"),
            "dfs.replication": "1",
            "dfs.namenode.http-address": f"127.0.0.1:{self._hdfs.http_port}",
            "dfs.datanode.address": f"127.0.0.1:{data}",
            "dfs.datanode.http.address": f"127.0.0.1:{data_http}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{data_ipc}",
            "dfs.datanode.hostname": "127.0.0.1",
            # The first report of a DataNode ends safe mode; 30 s of looking on follow otherwise.
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        }
        for name, settings in (("core-site", core), ("hdfs-site", hdfs)):
            (self._root / f"{name}.xml").write_text(_as_xml(settings))

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._takes_a_file():
            for process in self._processes:
                if not process.running:
                    raise BrokerStartError("A server of HDFS ended by itself", process.log)
            if time.monotonic() > deadline:
                what = f"HDFS took no file within {_START_SECONDS:g} s"
                raise BrokerStartError(what, self._processes[0].log)
            time.sleep(_POLL_SECONDS)

    def _takes_a_file(self) -> bool:
        try:
            self._hdfs.write("/ready", b"ready")
            self._hdfs.request("DELETE", "/ready", "op=DELETE")
        except (URLError, OSError, ValueError, KeyError):
            return False
        return True


def _servers(jars: Path) -> JarSet:
    (client,) = jars.glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    artifacts = (Artifact("org.apache.hadoop", "hadoop-client-minicluster", version), *_JAXB)
    return JarSet(f"hdfs-servers-{version}", artifacts, transitive=False)


def _as_xml(settings: dict[str, str]) -> str:
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<configuration>\n{properties}</configuration>\n"


def _send(method: str, url: str, body: bytes | None) -> bytes:
    request = Request(url, data=body, method=method)  # noqa: S310 - a server of ours
    request.add_header("Content-Type", "application/octet-stream")
    with urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        content: bytes = answer.read()
    return content
