"""The command line of ``pyspark-kafka demo``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ..domain.options.table import CLIENT
from .argument_values import CLIENTS, Commands, positive

DEFAULT_EVENTS: Final = 60_000
MAX_EMBEDDED_EVENTS: Final = 80_000
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


def add_demo(commands: Commands) -> None:
    """Add the command."""
    demo = commands.add_parser(
        "demo",
        help="stream events from Kafka through Spark and watch it",
        description=_DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_demo_options(demo)
    demo.set_defaults(settings=_settings, error=demo.error)


def _settings(given: argparse.Namespace) -> DemoSettings:
    problem = _problem(given)
    if problem:
        given.error(problem)
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
        type=positive,
        help=f"how many orders are made up (default: {DEFAULT_EVENTS}; "
        f"without --bootstrap-servers at most {MAX_EMBEDDED_EVENTS})",
    )
    demo.add_argument(
        "--spark-log", metavar="FILE", type=Path, help="keep in FILE what Spark logs meanwhile"
    )


def _problem(given: argparse.Namespace) -> str | None:
    if given.topic is not None and given.bootstrap_servers is None:
        return "--topic needs --bootstrap-servers"
    if given.topic is not None and given.events is not None:
        return "--events cannot go with --topic, to which nothing is written"
    if given.bootstrap_servers is None and (given.events or 0) > MAX_EMBEDDED_EVENTS:
        return f"more than {MAX_EMBEDDED_EVENTS} --events need a Kafka: give --bootstrap-servers"
    return None
