"""Servers that a run starts once and shares, and what most tests need of them."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

import pyspark_kafka
from pyspark_kafka.brokers import settings
from pyspark_kafka.domain.security.policy import AllowList

from .nightly_selection import runs_nightly
from .scheduling import OneSoakAtATime, processes_of_this_machine
from .servers.kdc import KRB5_CONFIG
from .servers.shared import LocalServers, RemoteServers, ServerDesk, Servers
from .slowness import bound_s
from .spark_home import make_spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController


pytest_plugins = ["tests.native_crashes"]

SERVERS: Final = pytest.StashKey[Servers]()
DESK: Final = pytest.StashKey[ServerDesk]()

SERVER_FIXTURES: Final = {
    "kafka": "kafka",
    "secured": "kafka",
    "hdfs": "storage",
    "s3": "storage",
    "schema_registry": "registry",
    "older_schema_registry": "registry",
    "spark": "spark",
    "connect": "spark",
    "connect_url": "spark",
}
"""The marker of a test that uses a server of the run, so that ``-m 'not kafka'`` excludes it."""

SLOWEST_FIRST: Final = ("soak", "spark", "conformance", "packaging", "integration", "contract")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run include what runs every night."""
    parser.addoption("--nightly", action="store_true", help="run what runs every night, too")
    parser.addoption("--stock-spark", action="store_true", help="compile queries, as users do")


def pytest_configure(config: pytest.Config) -> None:
    """Let this process find the run's servers: its own, or its parent's."""
    # A shell lets what it runs in the background ignore it (POSIX, 2.11), and programs that tests
    # start and stop inherited that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("PYSPARK_KAFKA_TEST_PATIENCE_S", str(bound_s(30)))
    given: dict[str, str] | None = getattr(config, "workerinput", None)
    if given is None:
        # Processes of tests and of Spark inherit both.
        directory = tempfile.TemporaryDirectory(prefix="pyspark-kafka-tests-")
        config.add_cleanup(directory.cleanup)
        os.environ[KRB5_CONFIG] = f"{directory.name}/krb5.conf"
        is_stock = config.getoption("stock_spark")
        home = make_spark_home(Path(directory.name) / "spark", is_stock=is_stock)
        os.environ["SPARK_HOME"] = str(home)
    config.stash[SERVERS] = LocalServers() if given is None else RemoteServers(given["servers"])
    # A port is free until its broker is up: processes that start brokers at once choose from
    # different ones.
    number = 0 if given is None else 1 + int(given["workerid"].removeprefix("gw"))
    settings._PORTS = settings._PORTS[number::64]


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what runs, if it is more than this process."""
    processes = config.getoption("numprocesses", None)
    if not processes or hasattr(config, "workerinput"):
        return None
    return (
        f"{processes} processes, each with a Spark of its own, share their servers; "
        "ARGS='-n 0' runs all in one process"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes run the tests: further ones for more than single tests."""
    return 0 if all("::" in path for path in config.args) else processes_of_this_machine()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneSoakAtATime | None:
    """Return what distributes the tests, unless another distribution is asked for."""
    return OneSoakAtATime(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with the servers that it uses, and with a time-out for this machine."""
    needed = SERVER_FIXTURES.keys() & set(getattr(item, "fixturenames", ()))
    for marker in {SERVER_FIXTURES[fixture] for fixture in needed}:
        item.add_marker(marker)
    if item.config.getoption("timeout") is None:
        given = item.get_closest_marker("timeout")
        usual = given.args[0] if given else item.config.getini("timeout")
        item.add_marker(pytest.mark.timeout(bound_s(float(usual))), append=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs every night, unless its file is named; begin with what takes longest."""
    if not config.getoption("nightly"):
        named = {config.invocation_params.dir / path.split("::", 1)[0] for path in config.args}
        left_out = {each for each in items if each.path not in named and runs_nightly(each.nodeid)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):
        folders = [Path(__file__).parent / folder for folder in SLOWEST_FIRST]
        ranks = {folder: rank for rank, folder in enumerate(folders)}
        items.sort(key=lambda item: min(ranks.get(each, len(ranks)) for each in item.path.parents))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Pass a further process of the run the address where it asks for servers."""
    stash = node.config.stash
    if DESK not in stash:
        stash[DESK] = ServerDesk(stash[SERVERS])
    node.workerinput["servers"] = stash[DESK].address


def pytest_unconfigure(config: pytest.Config) -> None:
    if DESK in config.stash:
        config.stash[DESK].close()
    config.stash[SERVERS].close()


@pytest.fixture(scope="session")
def servers(pytestconfig):
    """Find the servers of the run; each is started at its first use."""
    return pytestconfig.stash[SERVERS]


@pytest.fixture(scope="session")
def kafka(servers):
    from .servers.tested_kafka import shared_kafka

    return shared_kafka(servers.find("kafka"))


def shared(name: str) -> Any:
    """Return a fixture that finds a server of the run."""

    def find(servers: Servers) -> Any:
        return servers.find(name)

    return pytest.fixture(find, scope="session")


secured = shared("secured")
hdfs = shared("hdfs")
s3 = shared("s3")
schema_registry = shared("schema_registry")
older_schema_registry = shared("older_schema_registry")
connect_url = shared("spark_connect")


@pytest.fixture(scope="session")
def connect(connect_url):
    """Return a session of the Spark Connect server, beside this process's own Spark."""
    # gRPC otherwise starts its threads in forked children, too: one that is about to start a JVM
    # dies of it. doc/fork_support.md of grpc.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session = ConnectSession.builder.remote(connect_url).create()
    yield cast("SparkSession", session)
    session.client.close()


@pytest.fixture(scope="session")
def fresh_name():
    """Return what makes names that no other test of the run uses."""
    prefix = os.environ.get("PYTEST_XDIST_WORKER", "")
    numbers = itertools.count(1)
    return lambda: f"{prefix}t{next(numbers)}"


@pytest.fixture
def hang_ups():
    """Let SIGHUP end this process and those that it starts, also under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(params=["confluent", "kafka-python"])
def client(request):
    return request.param


@pytest.fixture
def world(client, fresh_name, kafka):
    """Yield the run's Kafka, which each client reads and writes in turn."""
    from pyspark_kafka.testing import KafkaWorld

    with contextlib.closing(KafkaWorld(client, fresh_name, kafka)) as world:
        yield world


@pytest.fixture(scope="session")
def topics(kafka, fresh_name):
    from .spark.topics import Topics

    return Topics(kafka, fresh_name)


@pytest.fixture(scope="session")
def spark(servers):
    """Run Spark in this process, with this source and with the JVM connector."""
    from pyspark.sql import SparkSession

    from pyspark_kafka.brokers import avro_jars, connector_jars

    if "PYTEST_XDIST_WORKER" in os.environ:
        # It pays if the run starts many programs that use Spark.
        servers.find("class_archive")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with pytest.MonkeyPatch.context() as patch:
        # An operator of this Spark lets queries import what tests define.
        patch.setenv(AllowList.MODULES.variable, __package__)
        # The issuer of tokens listens on any port.
        patch.setenv(AllowList.OPTIONS.variable, "sasl.oauthbearer.token.endpoint.url")
        session = pyspark_kafka.session(
            SparkSession.builder.master("local[2]")
            .appName("pyspark-kafka tests")
            .config("spark.jars", ",".join(map(str, (*connector_jars(), *avro_jars()))))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
        )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
