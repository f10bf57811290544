"""The command line of ``pyspark-kafka topics``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .argument_values import Commands, add_client, add_command, add_connection
from .connection import Connection

if TYPE_CHECKING:
    import argparse

ANY: Final = ".*"

_TOPICS: Final = """\
List topics with their partitions, offsets, sizes, retention and leaders.

Records are counted in offsets, an upper bound that includes transaction markers and
compacted records. Sizes are those of the leaders' logs; the client confluent cannot
tell them. What the broker does not tell is shown as "-".
"""


@final
@dataclass(frozen=True, slots=True)
class TopicListSettings:
    """The topics to list: those whose name has a match of ``pattern``."""

    connection: Connection
    pattern: str = ANY
    by_partition: bool = False
    as_json: bool = False


def add_topics(commands: Commands) -> None:
    """Add the command ``topics``."""
    topics = add_command(commands, "topics", "list topics", _TOPICS, _settings)
    topics.add_argument(
        "pattern",
        nargs="?",
        default=ANY,
        metavar="PATTERN",
        help="only topics whose name has a match of this regular expression; without one, all "
        "topics but Kafka's internal ones",
    )
    add_connection(topics)
    add_client(topics)
    topics.add_argument("--partitions", action="store_true", help="list each partition")
    topics.add_argument("--json", action="store_true", help="print a line of JSON per topic")


def _settings(given: argparse.Namespace) -> TopicListSettings:
    return TopicListSettings(Connection.given(given), given.pattern, given.partitions, given.json)
