"""The command line of ``pyspark-kafka broker``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final, final

from .argument_values import Commands, positive

_BROKER: Final = """\
Run a Kafka to try things on, until Ctrl-C.

without options   a mock broker inside of this process: it needs no Java, is there
                  at once, and keeps some 5 MB a partition in memory
--kafka           Apache Kafka, which needs Java 17, and a network the first time

Either listens on this machine only, and what it holds is gone when it ends.
"""


@final
@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Which brokers are to run. ``topics`` are names and numbers of partitions."""

    kafka: bool = False
    brokers: int = 1
    port: int | None = None
    topics: tuple[tuple[str, int], ...] = ()


def add_broker(commands: Commands) -> None:
    """Add the command."""
    broker = commands.add_parser(
        "broker",
        help="run a Kafka broker to try things on",
        description=_BROKER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    broker.add_argument("--kafka", action="store_true", help="run Apache Kafka")
    broker.add_argument(
        "--topic",
        metavar="NAME[:PARTITIONS]",
        dest="topics",
        type=_topic,
        action="append",
        default=[],
        help="create a topic, of one partition if no number is given; may be repeated",
    )
    broker.add_argument(
        "--brokers", metavar="N", type=positive, default=1, help="how many (default: 1)"
    )
    broker.add_argument(
        "--port",
        type=_port,
        help="of the first broker, the others have the next ones; needs --kafka "
        "(default: some that are free)",
    )
    broker.set_defaults(settings=_settings, error=broker.error)


def _settings(given: argparse.Namespace) -> BrokerSettings:
    if given.port is not None and not given.kafka:
        given.error("--port needs --kafka: the mock broker takes a port that is free")
    return BrokerSettings(given.kafka, given.brokers, given.port, tuple(given.topics))


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    if not name:
        raise argparse.ArgumentTypeError(f"'{text}' names no topic")
    return name, positive(partitions or "1")


def _port(text: str) -> int:
    number = positive(text)
    if number > 65_535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port")
    return number
