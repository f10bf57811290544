"""Values of command-line arguments, shared by the commands."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..bootstrap.clients import MEMORY, client_names
from ..domain.options.table import CLIENT

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - has no other name
else:
    Commands = object


def add_command(
    commands: Commands, name: str, summary: str, description: str, settings: Callable[..., object]
) -> argparse.ArgumentParser:
    """Add a command whose settings a function makes from the parsed arguments."""
    raw = argparse.RawDescriptionHelpFormatter
    command = commands.add_parser(name, help=summary, description=description, formatter_class=raw)
    command.set_defaults(settings=settings, error=command.error)
    return command


def add_client(command: argparse.ArgumentParser) -> None:
    """Add ``--client``: those installed here that connect to a Kafka, so not ``memory``."""
    names = [name for name in client_names() if name != MEMORY]
    text = "the Kafka client (default: %(default)s)"
    command.add_argument("--client", choices=names, default=CLIENT.default, help=text)


def positive(text: str) -> int:
    """Parse an integer of 1 or more."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def seconds(text: str) -> float:
    """Parse a number of seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return number


def name_and_value(text: str) -> tuple[str, str]:
    """Parse ``name=value``; no error message shows the value, which may be a secret."""
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise argparse.ArgumentTypeError("an option has the form name=value")
    return name, value


def client_settings(name: str) -> tuple[tuple[str, str], ...]:
    """Read a file of client settings like Kafka's own tools: one ``name=value`` a line.

    A line that ends with a backslash continues on the next one; ``#`` begins a comment.
    """
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"'{name}' cannot be read: {error}") from error
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    given = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return tuple((setting.strip(), value.strip()) for setting, value in map(name_and_value, given))
