"""What the command lines of several commands have in common."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - has no other name
else:
    Commands = object

CLIENTS: Final = ("kafka-python", "confluent")


def positive(text: str) -> int:
    """Read a number of 1 or more."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def seconds(text: str) -> float:
    """Read a number of seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return number


def name_and_value(text: str) -> tuple[str, str]:
    """Read ``name=value``; the value, which may be a secret, is in no message."""
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise argparse.ArgumentTypeError("an option is given as name=value")
    return name, value


def client_settings(name: str) -> tuple[tuple[str, str], ...]:
    """Read a file of client settings, as Kafka's own tools do: ``name=value``, a line each.

    A line that ends with a backslash goes on in the next; ``#`` begins a comment.
    """
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"'{name}' cannot be read: {error}") from error
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    given = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return tuple((setting.strip(), value.strip()) for setting, value in map(name_and_value, given))
