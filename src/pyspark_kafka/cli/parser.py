"""What can be said on the command line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from .. import __version__
from ..domain.options.table import CLIENT

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENTS: Final = ("kafka-python", "confluent")
DEFAULT_EVENTS: Final = 60_000
MOST_EMBEDDED_EVENTS: Final = 80_000
"""What surely fits into the embedded broker, which drops what is older."""

_DEMO: Final = """\
Stream made-up shop orders from Kafka through Spark, and show what comes of it.

without options                   on a broker inside of this process
--bootstrap-servers               on your Kafka, in a new topic that is deleted
                                  at the end
--bootstrap-servers and --topic   nothing is written: your topic is read, from
                                  its first record to the last one there is now
"""


@final
@dataclass(frozen=True, slots=True)
class DemoSettings:
    """How the demo is to run."""

    bootstrap_servers: str | None = None
    topic: str | None = None
    client: str = CLIENT.default
    events: int = DEFAULT_EVENTS
    spark_log: Path | None = None


def parse_arguments(argv: Sequence[str] | None) -> DemoSettings:
    """Read the command line; the process ends here when it cannot be read or asks for help."""
    parser = argparse.ArgumentParser(
        prog="pyspark-kafka", description="Kafka for Spark in pure Python."
    )
    parser.add_argument("--version", action="version", version=f"pyspark-kafka {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo",
        help="stream events from Kafka through Spark and watch it",
        description=_DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_demo_options(demo)
    given = parser.parse_args(argv)
    problem = _problem(given)
    if problem:
        demo.error(problem)
    return DemoSettings(
        given.bootstrap_servers,
        given.topic,
        given.client,
        given.events or DEFAULT_EVENTS,
        given.spark_log,
    )


def _add_demo_options(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT,...", help="a Kafka cluster to run on"
    )
    demo.add_argument("--topic", help="a topic of that cluster to read instead of made-up orders")
    demo.add_argument(
        "--client",
        choices=CLIENTS,
        default=CLIENT.default,
        help="the Kafka client that reads (default: %(default)s)",
    )
    demo.add_argument(
        "--events",
        metavar="N",
        type=_positive,
        help=f"how many orders are made up (default: {DEFAULT_EVENTS}; "
        f"without --bootstrap-servers at most {MOST_EMBEDDED_EVENTS})",
    )
    demo.add_argument(
        "--spark-log", metavar="FILE", type=Path, help="keep in FILE what Spark logs meanwhile"
    )


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def _problem(given: argparse.Namespace) -> str | None:
    if given.topic is not None and given.bootstrap_servers is None:
        return "--topic needs --bootstrap-servers"
    if given.topic is not None and given.events is not None:
        return "--events cannot go with --topic, to which nothing is written"
    if given.bootstrap_servers is None and (given.events or 0) > MOST_EMBEDDED_EVENTS:
        return f"more than {MOST_EMBEDDED_EVENTS} --events need a Kafka: give --bootstrap-servers"
    return None
