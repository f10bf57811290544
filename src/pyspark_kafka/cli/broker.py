"""``pyspark-kafka broker``: run a Kafka broker to try things out."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from typing import TYPE_CHECKING, Final

from .arguments import Commands, add_command, positive
from .output import Console, logs_redirected_to, until_interrupted

if TYPE_CHECKING:
    from ..brokers import EmbeddedBroker, KafkaCluster

_BROKER: Final = """\
Run a Kafka broker to try things out, until Ctrl-C.

without options   a mock broker in this process: it needs no Java, starts at once,
                  and keeps about 5 MB per partition in memory
--kafka           Apache Kafka: needs Java 17, and downloads its jars the first time

Both listen on this machine only, and delete their data when they stop.
"""


def add_broker(commands: Commands) -> None:
    """Add the command ``broker``."""
    summary = "run a Kafka broker to try things out"
    broker = add_command(commands, "broker", summary, _BROKER, run_broker)
    broker.add_argument("--kafka", action="store_true", help="run Apache Kafka")
    broker.add_argument(
        "--topic",
        metavar="NAME[:PARTITIONS]",
        dest="topics",
        type=_topic,
        action="append",
        default=[],
        help="create a topic (default: 1 partition); may be repeated",
    )
    broker.add_argument(
        "--brokers",
        metavar="N",
        type=positive,
        default=1,
        help="the number of brokers (default: 1)",
    )
    broker.add_argument(
        "--port",
        type=_port,
        help="the port of the first broker; the others get the next ones; needs --kafka "
        "(default: free ports)",
    )


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    if not name:
        raise argparse.ArgumentTypeError(f"'{text}' does not name a topic")
    return name, positive(partitions or "1")


def _port(text: str) -> int:
    number = positive(text)
    if number > 65_535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port")
    return number


def run_broker(given: argparse.Namespace) -> int:
    """Run brokers until Ctrl-C or SIGTERM, and return the exit status.

    :raises PysparkKafkaError: if a dependency is missing, or the brokers do not start.
    """
    if given.port is not None and not given.kafka:
        given.error("--port needs --kafka: the mock broker chooses a free port")
    console = Console(sys.stdout)
    with (
        logs_redirected_to(logging.NullHandler()),
        until_interrupted(),
        _brokers(given, console) as brokers,
    ):
        for name, partitions in given.topics:
            brokers.create_topic(name, partitions)
        console.clear()
        _introduce(given, brokers.options, console)
        threading.Event().wait()
    console.clear()
    console.line("The broker has stopped.")
    return 0


def _brokers(given: argparse.Namespace, console: Console) -> EmbeddedBroker | KafkaCluster:
    from ..brokers import EmbeddedBroker, KafkaCluster, require_java

    if not given.kafka:
        return EmbeddedBroker(given.brokers)
    require_java()
    console.live("Starting Apache Kafka ...")
    return KafkaCluster(given.brokers, port=given.port)


def _introduce(given: argparse.Namespace, options: dict[str, str], console: Console) -> None:
    kind = "Apache Kafka" if given.kafka else "A mock broker"
    console.line(f"{kind} is running until Ctrl-C. The options of a query:")
    console.line()
    for name, value in options.items():
        console.line(f"  {name}={value}")
    console.line()
    for name, partitions in given.topics:
        console.line(f"topic '{name}', {partitions} partition{'s' if partitions > 1 else ''}")
    console.line("To read from it:")
    console.line()
    topic = given.topics[0][0] if given.topics else "mine"
    console.line('  (spark.readStream.format("pyspark_kafka")')
    for name, value in {**options, "subscribe": topic}.items():
        console.line(f'    .option("{name}", "{value}")')
    console.line("    .load())")
    console.line()
