"""Servers that a run starts once, at their first use, and shares among its processes."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Client, Listener
from pkgutil import resolve_name
from typing import Any, Final, Protocol

from pyspark_kafka.brokers.settings import Node

_BROKER_CONFIG: Final = {
    # Compaction is looked at every 15 s by default, which a test would have to wait for.
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    # The first look at retention comes after 30 s by default.
    "log.initial.task.delay.ms": "500",
    # Tests write records with old timestamps; a topic that is to lose them says so itself.
    "log.retention.ms": "-1",
}


class Servers(Protocol):
    """Finds the servers of the run."""

    def find(self, name: str) -> Any:
        """Return where a server listens; the first call for it starts it."""

    def close(self) -> None:
        """End what this process has started."""


class LocalServers:
    """Servers of this process; the answers can be pickled."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self._found: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        if name not in self._found:
            self._found[name] = self._running.enter_context(resolve_name(_STARTS[name])())
        return self._found[name]

    def close(self) -> None:
        self._running.close()


class RemoteServers:
    """Servers of another process, which has a ``ServerDesk``."""

    def __init__(self, address: str) -> None:
        self._address = address

    def find(self, name: str) -> Any:
        with Client(self._address) as desk:
            desk.send(name)
            answer = desk.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Leave the servers to their owner."""


class ServerDesk:
    """Answers other processes of this user that look for servers of this one, one by one."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._listener = Listener(family="AF_UNIX")
        self._thread = threading.Thread(target=self._answer_all, name="servers")
        self._thread.start()

    @property
    def address(self) -> str:
        address = self._listener.address
        assert isinstance(address, str)
        return address

    def close(self) -> None:
        with Client(self.address) as last:
            last.send(None)
        self._thread.join()
        self._listener.close()

    def _answer_all(self) -> None:
        while True:
            # The process that asks may have been killed.
            with suppress(EOFError, OSError), self._listener.accept() as caller:
                name = caller.recv()
                if name is None:
                    return
                caller.send(self._answer(name))

    def _answer(self, name: str) -> Any:
        try:
            return self._servers.find(name)
        except Exception as error:  # noqa: BLE001  # it is raised by the process that asked
            return error


_STARTS: Final = {
    "kafka": "tests.servers.shared:run_kafka",
    "secured": "tests.servers.secured:run_secured",
    "hdfs": "tests.servers.hdfs:run_hdfs",
    "s3": "tests.servers.s3:run_s3",
    "schema_registry": "tests.servers.apicurio:run_apicurio",
    "older_schema_registry": "tests.servers.apicurio:run_older_apicurio",
    "spark_connect": "tests.servers.spark_connect:run_connect_server",
    "class_archive": "tests.spark_home:making_class_archive",
}
"""The function that starts a server, by its name; imported when it is needed."""


@contextmanager
def run_kafka() -> Iterator[tuple[Node, ...]]:
    from .tested_kafka import kafka_of_run

    with kafka_of_run(_BROKER_CONFIG) as cluster:
        yield cluster._nodes
