"""``pyspark-kafka demo``: stream a topic through Spark, and show the result."""

from __future__ import annotations

import logging
import secrets
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from .arguments import Commands, add_client, add_command, add_file, positive
from .output import Console, logs_redirected_to

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from .demo_queries import DemoTopic

DEFAULT_EVENTS: Final = 60_000
MAX_EMBEDDED_EVENTS: Final = 80_000
"""As many as always fit into the embedded broker, which drops older records."""

_DEMO: Final = """\
Stream generated shop orders from Kafka through Spark and back, and show the result.

without options                   on a broker in this process
--bootstrap-servers               on your Kafka, in new topics that are deleted
                                  at the end
--bootstrap-servers and --topic   reads your topic, from its first record to its
                                  current end; nothing is written
--continuous                      by a continuous query, which passes each order
                                  on within milliseconds
"""

_NAME: Final = "pyspark-kafka-demo"
_PARTITIONS: Final = 4
_TIMEOUT_SECONDS: Final = 10


def add_demo(commands: Commands) -> None:
    """Add the command ``demo``."""
    summary = "stream records from Kafka through Spark"
    demo = add_command(commands, "demo", summary, _DEMO, run_demo)
    demo.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT,...", help="a Kafka cluster to run on"
    )
    demo.add_argument("--topic", help="a topic of that cluster to read instead of generated orders")
    add_client(demo)
    demo.add_argument(
        "--events",
        metavar="N",
        type=positive,
        help=f"the number of orders (default: {DEFAULT_EVENTS}; "
        f"without --bootstrap-servers at most {MAX_EMBEDDED_EVENTS})",
    )
    demo.add_argument(
        "--continuous", action="store_true", help="run a continuous query, not micro-batches"
    )
    add_file(demo, "--spark-log", Path, "write Spark's log to FILE")


def _check(given: argparse.Namespace) -> None:
    if given.topic is not None and given.bootstrap_servers is None:
        given.error("--topic needs --bootstrap-servers")
    if given.topic is not None and given.events is not None:
        given.error("--events cannot go with --topic: the demo only reads your topic")
    if given.topic is not None and given.continuous:
        given.error("--continuous cannot go with --topic: the demo only reads your topic")
    if given.bootstrap_servers is None and (given.events or 0) > MAX_EMBEDDED_EVENTS:
        need = f"more than {MAX_EMBEDDED_EVENTS} --events need a Kafka: set --bootstrap-servers"
        given.error(need)


def run_demo(given: argparse.Namespace) -> int:
    """Run the demo, and return the exit status.

    :raises PysparkKafkaError: if a dependency is missing, or the demo fails.
    """
    _check(given)
    from ..brokers import require_java
    from .spark import readable_spark_errors, require_pyspark, spark_session

    console = Console(sys.stdout)
    require_java()
    with ExitStack() as stack:
        # The JVM deletes its own files in it when it ends, perhaps at the same time.
        temporary = TemporaryDirectory(prefix="pyspark-kafka-", ignore_cleanup_errors=True)
        directory = Path(stack.enter_context(temporary))
        log = given.spark_log or directory / "log"
        stack.enter_context(logs_redirected_to(logging.FileHandler(log, delay=True)))
        stack.callback(console.clear)
        version = require_pyspark()
        topic = stack.enter_context(_topic(given))
        partitions = topic.partitions()
        _introduce(given, topic, partitions, console)
        console.live(f"Starting Spark {version} ...")
        stack.enter_context(readable_spark_errors())
        from .demo_queries import Demo

        spark = stack.enter_context(spark_session(directory, log))
        demo = Demo(spark, topic, directory / "checkpoint", console)
        if topic.results is None:
            demo.summarize_topic(partitions)
        else:
            demo.stream_orders(given.events or DEFAULT_EVENTS, is_continuous=given.continuous)
        _what_next(given, console)
        console.live("Stopping Spark ...")
    return 0


@contextmanager
def _topic(given: argparse.Namespace) -> Iterator[DemoTopic]:
    """Yield the user's topic, or one on an embedded broker, or one that is deleted at the end."""
    from ..brokers import EmbeddedBroker, temporary_topics
    from .demo_queries import DemoTopic

    servers = given.bootstrap_servers
    connection = {"kafka.bootstrap.servers": servers}
    name = _NAME if servers is None else f"{_NAME}-{secrets.token_hex(4)}"
    name, results = (given.topic, None) if given.topic else (name, f"{name}-by-country")
    with ExitStack() as stack:
        if servers is None:
            broker = stack.enter_context(EmbeddedBroker())
            connection = broker.options
            for created in (name, str(results)):
                broker.create_topic(created, _PARTITIONS)
        elif results is not None:
            partitions = dict.fromkeys((name, results), _PARTITIONS)
            stack.enter_context(temporary_topics(servers, partitions, _TIMEOUT_SECONDS))
        timeout = {"kafka.default.api.timeout.ms": str(1_000 * _TIMEOUT_SECONDS)}
        yield DemoTopic(name, results, {**connection, **timeout, "client": given.client})


def _introduce(
    given: argparse.Namespace, topic: DemoTopic, partitions: int, console: Console
) -> None:
    kind = "embedded broker" if given.bootstrap_servers is None else "Kafka"
    console.line(f"{kind} at {topic.connection['kafka.bootstrap.servers']}")
    console.line(f"topic '{topic.name}', {partitions} partitions")
    console.line(f"client '{given.client}', no jars")
    console.line()


def _what_next(given: argparse.Namespace, console: Console) -> None:
    other = "kafka-python" if given.client == "confluent" else "confluent"
    console.line()
    console.line(f"Try next: --client {other}")
    if not given.continuous:
        console.line("          --continuous   (results in milliseconds)")
    if given.topic is None:
        console.line("          --bootstrap-servers host:9092 --topic mine   (only reads)")
    console.line("Your own query: see the README.")
