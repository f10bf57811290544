"""The parser of the command line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn, final

from .. import __version__
from ..domain.options.option import did_you_mean
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
    add_completion,
)
"""The commands in the order of the help."""

_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_NAME: Final = re.compile(r"[\w-]+")
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@final
class _Parser(argparse.ArgumentParser):
    """Never repeats a secret of an argument in an error; suggests names of commands and options."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        text = f"{without_secrets(message)}{self._suggestion(message)}"
        self.exit(2, f"{self.prog}: error: {text}\n")

    def _suggestion(self, message: str) -> str:
        if choice := _CHOICE.search(message):
            return did_you_mean(choice[1], {name: name for name in _NAME.findall(choice[2])})
        options = {name: name for name in _OPTION.findall(self.format_help())}
        given = (each.partition("=")[0] for each in self._given if each.startswith("--"))
        return next(
            (
                hint
                for each in given
                if each not in options
                if (hint := did_you_mean(each, options))
            ),
            "",
        )


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
