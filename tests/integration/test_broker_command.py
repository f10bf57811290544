import os
import signal
import socket
from pathlib import Path

import pytest

from pyspark_kafka.bootstrap.container import closing_clients, container_for, sink_container_for
from pyspark_kafka.brokers.settings import free_ports, ports_from
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.testing.writing_contract import batch_of

from . import uses
from .commands import Running, run, running

SETTINGS = ("kafka.bootstrap.servers=", "kafka.api.", "kafka.broker.")


def options_of(started: Running) -> dict[str, str]:
    options = {}
    line = started.await_line(lambda line: line.strip().startswith(SETTINGS))
    while line.strip():
        name, _, value = line.strip().partition("=")
        options[name] = value
        line = started.await_line(lambda _: True)
    return options


def produce(options: dict[str, str], client: str, topic: str) -> None:
    given = parse_sink_options({**options, "client": client}, QueryKind.BATCH, UNRESTRICTED)
    with closing_clients(sink_container_for(given)) as container:
        container.record_writer().write(batch_of(value=[b"v"], partition=[1]), topic)
        assert container.record_writer().flush().records == 1


def values(options: dict[str, str], client: str, topic: str) -> list[bytes | None]:
    given = {**options, "client": client, "subscribe": topic}
    parsed = parse_source_options(given, QueryKind.BATCH)
    with closing_clients(container_for(parsed)) as container:
        return uses.values(container)


@pytest.mark.usefixtures("hang_ups")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("kind", [(), ("--kafka",)])
def test_a_broker_serves_both_clients_until_it_is_stopped(tmp_path, kind, ending):
    topics = ("--topic", "orders:2", "--topic", "other")
    with running("broker", *kind, *topics, TMPDIR=str(tmp_path)) as started:
        options = options_of(started)
        for number, client in enumerate(("confluent", "kafka-python"), 1):
            produce(options, client, "orders")
            for reader in ("confluent", "kafka-python"):
                assert values(options, reader, "orders") == [b"v"] * number
        if kind:
            assert processes_in(tmp_path)
        assert started.end(ending) == 0
    assert not started.errors
    assert processes_in(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_brokers_listen_on_the_given_port():
    [port] = free_ports(1)
    with running("broker", "--kafka", "--port", str(port)) as started:
        assert options_of(started) == {"kafka.bootstrap.servers": f"127.0.0.1:{port}"}
        taken = run("broker", "--kafka", "--port", str(port))
        assert started.end(signal.SIGINT) == 0
    assert (taken.returncode, taken.stdout) == (1, "")
    assert taken.stderr == (
        f"error: port {port} of 127.0.0.1 is taken, or may not be used: end the process that "
        "listens there, or choose another port\n"
    )


def test_the_port_of_a_broker_that_has_ended_is_free_at_once():
    """The broker's side of a connection is in the state TIME_WAIT for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
    assert ports_from(address[1], 1) == (address[1],)


def test_a_missing_java_is_an_error(tmp_path):
    ended = run("broker", "--kafka", JAVA_HOME=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: [JAVA_NOT_USABLE] Java 17 or newer is required")
    assert "Install a JDK 17" in line


def processes_in(directory: Path) -> list[int]:
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue
        if str(directory).encode() in line:
            found.append(int(pid))
    return found
