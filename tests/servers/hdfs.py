"""A real HDFS on loopback ports: one NameNode, one DataNode."""

import getpass
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from pyspark_kafka.brokers.errors import BrokerStartError
from pyspark_kafka.brokers.jars import Artifact, JarSet, resolve
from pyspark_kafka.brokers.java import JavaProcess, require_java
from pyspark_kafka.brokers.settings import free_ports
from tests.slowness import bound_s

from .java_server import SMALL_JVM, running

_FORMAT_S: Final = bound_s(120)
_NAME_NODE: Final = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE: Final = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_JAXB: Final = (Artifact("javax.xml.bind", "jaxb-api", "2.3.1"),)
"""A package that Hadoop 3.4's Jersey needs, and neither Java 17 nor PySpark has."""


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
        answer = self.request("PUT", path, "op=CREATE&overwrite=true&noredirect=true")
        _send("PUT", answer["Location"], content)

    def touch(self, path: str, modified: int) -> None:
        """Set when a file was written, in milliseconds since the epoch."""
        self.request("PUT", path, f"op=SETTIMES&modificationtime={modified}")

    def names(self, path: str) -> list[str]:
        statuses = self.request("GET", path, "op=LISTSTATUS")["FileStatuses"]["FileStatus"]
        return sorted(status["pathSuffix"] for status in statuses)

    def request(self, method: str, path: str, query: str) -> Any:
        url = f"http://127.0.0.1:{self.http_port}/webhdfs/v1{path}?{query}&user.name={getpass.getuser()}"
        return json.loads(_send(method, url, None) or b"null")


@contextmanager
def run_hdfs() -> Iterator[Hdfs]:
    """Run HDFS, in the version of the Hadoop that PySpark carries.

    The user who started it is its superuser, other users are held to permissions, and there is no
    authentication.
    """
    jars = Path(str(files("pyspark"))) / "jars"
    name_port, http_port, *data_ports = free_ports(5)
    hdfs = Hdfs(name_port, http_port)
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-hdfs-") as name:
        root = Path(name)
        _write_configuration(root, hdfs, data_ports)
        # Everything but the servers comes with PySpark: its Hadoop client, and a logger.
        classes = f"{root}:{resolve(_servers(jars))}/*:{jars}/*"
        java = [str(require_java()), *SMALL_JVM, "-cp", classes]
        formatting = JavaProcess(
            [*java, _NAME_NODE, "-format", "-nonInteractive"], root, root / "format.log"
        )
        if formatting.wait(_FORMAT_S) != 0:
            formatting.kill()
            raise BrokerStartError("HDFS was not formatted", formatting.log)
        nodes = {"namenode": [*java, _NAME_NODE], "datanode": [*java, _DATA_NODE]}
        with running("HDFS", nodes, root, lambda: _takes_a_file(hdfs)):
            yield hdfs


def _write_configuration(root: Path, hdfs: Hdfs, data_ports: Sequence[int]) -> None:
    data, data_http, data_ipc = data_ports
    core = {"fs.defaultFS": hdfs.native_url, "hadoop.tmp.dir": str(root / "tmp")}
    site = {
        "dfs.namenode.name.dir": str(root / "name"),
        "dfs.datanode.data.dir": str(root / "data"),
        "dfs.replication": "1",
        "dfs.namenode.http-address": f"127.0.0.1:{hdfs.http_port}",
        "dfs.datanode.address": f"127.0.0.1:{data}",
        "dfs.datanode.http.address": f"127.0.0.1:{data_http}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{data_ipc}",
        "dfs.datanode.hostname": "127.0.0.1",
        # The first report of a DataNode ends safe mode; 30 s of looking on follow otherwise.
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    }
    for name, settings in (("core-site", core), ("hdfs-site", site)):
        (root / f"{name}.xml").write_text(_as_xml(settings))


def _takes_a_file(hdfs: Hdfs) -> bool:
    try:
        hdfs.write("/ready", b"ready")
        hdfs.request("DELETE", "/ready", "op=DELETE")
    except (OSError, ValueError, KeyError):
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
