"""The parser of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, NoReturn, final

from .. import __version__
from ..domain.security.secrets import without_secrets
from .broker_arguments import BrokerSettings, add_broker
from .completion_arguments import CompletionSettings, add_completion
from .dead_letter_arguments import (
    ListLettersSettings,
    ReplayLettersSettings,
    add_dead_letters,
)
from .demo_arguments import DemoSettings, add_demo
from .doctor_arguments import DoctorSettings, add_doctor
from .lag_arguments import LagSettings, add_lag
from .offsets_arguments import (
    DiffOffsetsSettings,
    ExportOffsetsSettings,
    RewriteOffsetsSettings,
    ShowOffsetsSettings,
    UndoRewriteSettings,
    add_offsets,
)
from .prometheus_arguments import PrometheusSettings, add_prometheus
from .tail_arguments import TailSettings, add_tail
from .topic_list_arguments import TopicListSettings, add_topics
from .warm_arguments import WarmSettings, add_warm

__all__ = [
    "BrokerSettings",
    "CompletionSettings",
    "DemoSettings",
    "DiffOffsetsSettings",
    "DoctorSettings",
    "ExportOffsetsSettings",
    "LagSettings",
    "ListLettersSettings",
    "PrometheusSettings",
    "ReplayLettersSettings",
    "RewriteOffsetsSettings",
    "Settings",
    "ShowOffsetsSettings",
    "TailSettings",
    "TopicListSettings",
    "UndoRewriteSettings",
    "WarmSettings",
    "command_parser",
    "parse_arguments",
]

Settings = (
    BrokerSettings
    | CompletionSettings
    | DemoSettings
    | DiffOffsetsSettings
    | DoctorSettings
    | ExportOffsetsSettings
    | LagSettings
    | ListLettersSettings
    | PrometheusSettings
    | ReplayLettersSettings
    | RewriteOffsetsSettings
    | ShowOffsetsSettings
    | TailSettings
    | TopicListSettings
    | UndoRewriteSettings
    | WarmSettings
)


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
    return parser


def parse_arguments(argv: Sequence[str] | None) -> Settings:
    """Parse the command line; exit with a message if it is wrong or asks for help."""
    given = command_parser().parse_args(argv)
    settings: Settings = given.settings(given)
    return settings
