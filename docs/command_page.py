"""The reference page of the command line, from its parser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from pyspark_kafka.cli.parser import command_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD: Final = """\
<!-- make docs makes this page from the parser; do not edit it. -->

# Command line

Look up each command and its arguments on this page. The command is `pyspark-kafka`, or
`python -m pyspark_kafka` where scripts are not on the path. `--help` shows the contents of this
page, and `--version` the version.

| exit status | |
|---|---|
| 0 | the command did what it was asked for |
| 1 | it failed, and printed the [condition](../troubleshoot/errors.md) and who can fix it |
| 2 | its arguments are wrong |
| 130 | it was interrupted by Ctrl-C |

| command | |
|---|---|
"""


def cli_page() -> str:
    """Return the page: a table of the commands, and a section for each."""
    commands = list(_commands(command_parser()))
    table = "".join(
        f"| [`{parser.prog}`](#{parser.prog.replace(' ', '-')}) | {summary} |\n"
        for parser, summary in commands
    )
    return HEAD + table + "".join(_section(parser) for parser, _ in commands)


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Yield the commands without subcommands, with their summaries."""
    for group in _groups(parser):
        for choice in group._choices_actions:  # noqa: SLF001  # argparse has no public name for it
            command = group.choices[choice.dest]
            if _groups(command):
                yield from _commands(command)
            else:
                yield command, choice.help or ""


def _groups(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction]:
    actions = parser._actions  # noqa: SLF001
    return [one for one in actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001


def _section(parser: argparse.ArgumentParser) -> str:
    actions = (one for one in parser._actions if one.dest != "help")  # noqa: SLF001
    rows = "".join(f"| {_name(one)} | {_help(one)} |\n" for one in actions)
    table = f"\n| argument | |\n|---|---|\n{rows}" if rows else ""
    description = (parser.description or "").strip()
    return f"\n## {parser.prog}\n\n```text\n{description}\n```\n{table}"


def _name(action: argparse.Action) -> str:
    values = "" if action.nargs == 0 else _values(action)
    names = action.option_strings or [""]
    return ", ".join(f"`{f'{name} {values}'.strip()}`" for name in names)


def _values(action: argparse.Action) -> str:
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    metavar = action.metavar or action.dest
    name = metavar if isinstance(metavar, str) else " ".join(metavar)
    return name.upper() if action.option_strings else name


def _help(action: argparse.Action) -> str:
    text = (action.help or "") % vars(action)
    required = " (required)" if action.required and action.option_strings else ""
    return f"{text}{required}".replace("|", "\\|")
