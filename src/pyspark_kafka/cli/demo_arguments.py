"""The command line of ``pyspark-kafka demo``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ..domain.options.source_table import CLIENT
from .argument_values import Commands, add_client, add_command, positive

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


@final
@dataclass(frozen=True, slots=True)
class DemoSettings:
    """The settings of a run of the demo."""

    bootstrap_servers: str | None = None
    topic: str | None = None
    client: str = CLIENT.default
    events: int = DEFAULT_EVENTS
    spark_log: Path | None = None
    is_continuous: bool = False


def add_demo(commands: Commands) -> None:
    """Add the command ``demo``."""
    summary = "stream records from Kafka through Spark"
    demo = add_command(commands, "demo", summary, _DEMO, _settings)
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
    demo.add_argument("--spark-log", metavar="FILE", type=Path, help="write Spark's log to FILE")


def _settings(given: argparse.Namespace) -> DemoSettings:
    if given.topic is not None and given.bootstrap_servers is None:
        given.error("--topic needs --bootstrap-servers")
    if given.topic is not None and given.events is not None:
        given.error("--events cannot go with --topic: the demo only reads your topic")
    if given.topic is not None and given.continuous:
        given.error("--continuous cannot go with --topic: the demo only reads your topic")
    if given.bootstrap_servers is None and (given.events or 0) > MAX_EMBEDDED_EVENTS:
        need = f"more than {MAX_EMBEDDED_EVENTS} --events need a Kafka: set --bootstrap-servers"
        given.error(need)
    events = given.events or DEFAULT_EVENTS
    return DemoSettings(
        given.bootstrap_servers,
        given.topic,
        given.client,
        events,
        given.spark_log,
        is_continuous=given.continuous,
    )
