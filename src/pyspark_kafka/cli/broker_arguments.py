"""The command line of ``pyspark-kafka broker``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final, final

from .argument_values import Commands, add_command, positive

_BROKER: Final = """\
Run a Kafka broker to try things out, until Ctrl-C.

without options   a mock broker in this process: it needs no Java, starts at once,
                  and keeps about 5 MB per partition in memory
--kafka           Apache Kafka: needs Java 17, and downloads its jars the first time

Both listen on this machine only, and delete their data when they stop.
"""


@final
@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The brokers to run. ``topics`` are names with numbers of partitions."""

    kafka: bool = False
    brokers: int = 1
    port: int | None = None
    topics: tuple[tuple[str, int], ...] = ()


def add_broker(commands: Commands) -> None:
    """Add the command ``broker``."""
    summary = "run a Kafka broker to try things out"
    broker = add_command(commands, "broker", summary, _BROKER, _settings)
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


def _settings(given: argparse.Namespace) -> BrokerSettings:
    if given.port is not None and not given.kafka:
        given.error("--port needs --kafka: the mock broker chooses a free port")
    return BrokerSettings(given.kafka, given.brokers, given.port, tuple(given.topics))


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
