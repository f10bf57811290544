"""The parser of the command line."""

from __future__ import annotations

import argparse
from typing import Final, NoReturn, final

from .. import __version__
from ..domain.security.secrets import without_secrets
from .broker import add_broker
from .completion import add_completion
from .dead_letters import add_dead_letters
from .demo import add_demo
from .doctor import add_doctor
from .lag import add_lag
from .offsets import add_offsets
from .prometheus import add_prometheus
from .tail import add_tail
from .topics import add_topics
from .warm import add_warm

_COMMANDS: Final = (
    add_demo,
    add_doctor,
    add_topics,
    add_tail,
    add_lag,
    add_prometheus,
    add_offsets,
    add_dead_letters,
    add_broker,
    add_warm,
    add_completion,
)
"""In the order of the help."""


@final
class _Parser(argparse.ArgumentParser):
    """Repeats no secret of an argument in an error."""

    def error(self, message: str) -> NoReturn:
        super().error(without_secrets(message))


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser: argparse.ArgumentParser = _Parser(
        prog="pyspark-kafka", description="Kafka for Spark in pure Python."
    )
    parser.add_argument("--version", action="version", version=f"pyspark-kafka {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for add in _COMMANDS:
        add(commands)
    parser.set_defaults(parser=parser)
    return parser
