"""``pyspark-kafka completion``: print a script that completes commands and options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from .arguments import Commands, add_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHELLS: Final = ("bash", "zsh")

_COMPLETION: Final = """\
Print a script that completes commands and options in a shell.

bash:  pyspark-kafka completion bash > ~/.local/share/bash-completion/completions/pyspark-kafka
zsh:   pyspark-kafka completion zsh > ~/.pyspark-kafka.zsh
       and in ~/.zshrc, after compinit: source ~/.pyspark-kafka.zsh
"""

_FILE: Final = "FILE"

_SCRIPT: Final = """\
_pyspark_kafka() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
    local path="" word words=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path/$word" in
            {paths}) path="$path/$word" ;;
        esac
    done
    case "$path $previous" in
{values}
    esac
    case "$path" in
{words}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _pyspark_kafka pyspark-kafka
"""

_FOR_ZSH: Final = "autoload -U +X bashcompinit && bashcompinit\n"


def add_completion(commands: Commands) -> None:
    """Add the command ``completion``."""
    summary = "print a script that completes commands and options in a shell"
    completion = add_command(commands, "completion", summary, _COMPLETION, run_completion)
    completion.add_argument("shell", choices=SHELLS, help="the shell")


def run_completion(given: argparse.Namespace) -> int:
    """Print the script, and return the exit status."""
    from .parser import command_parser

    print(completion_script(command_parser(), given.shell), end="")
    return 0


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return a script for bash or zsh that completes the commands of a parser."""
    commands = dict(_commands(parser, ""))
    values = [line for path, command in commands.items() for line in _values(path, command)]
    words = [
        f'        "{path}") words="{_words(command)}" ;;' for path, command in commands.items()
    ]
    script = _SCRIPT.format(
        paths="|".join(f'"{path}"' for path in commands if path),
        values="\n".join(values),
        words="\n".join(words),
    )
    return _FOR_ZSH + script if shell == "zsh" else script


def _commands(
    parser: argparse.ArgumentParser, path: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command by its path, such as ``/dead-letters/list``."""
    yield path, parser
    for name, command in _subcommands(parser).items():
        yield from _commands(command, f"{path}/{name}")


def _subcommands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001 - there is no other way to them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            found.update(action.choices)
    return found


def _words(parser: argparse.ArgumentParser) -> str:
    """Return the commands, options and choices that may be the next word."""
    words = [*_subcommands(parser)]
    for action in parser._actions:  # noqa: SLF001
        words += action.option_strings
        if not action.option_strings and not isinstance(action.choices, dict):
            words += map(str, action.choices or ())
    return " ".join(words)


def _values(path: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the cases of options whose values are known, or are files."""
    for action in parser._actions:  # noqa: SLF001
        for option in action.option_strings:
            if action.choices:
                choices = f'-W "{" ".join(map(str, action.choices))}"'
            elif action.metavar == _FILE:
                choices = "-f"
            elif action.nargs == 0:
                continue
            else:
                choices = '-W ""'
            yield (
                f'        "{path} {option}") '
                f'COMPREPLY=($(compgen {choices} -- "$current")); return ;;'
            )
