"""The command line of ``pyspark-kafka completion``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .argument_values import Commands, add_command

if TYPE_CHECKING:
    import argparse

SHELLS: Final = ("bash", "zsh")

_COMPLETION: Final = """\
Print a script that completes commands and options in a shell.

bash:  pyspark-kafka completion bash > ~/.local/share/bash-completion/completions/pyspark-kafka
zsh:   pyspark-kafka completion zsh > ~/.pyspark-kafka.zsh
       and in ~/.zshrc, after compinit: source ~/.pyspark-kafka.zsh
"""


@final
@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """The shell."""

    shell: str


def add_completion(commands: Commands) -> None:
    """Add the command ``completion``."""
    summary = "print a script that completes commands and options in a shell"
    completion = add_command(commands, "completion", summary, _COMPLETION, _settings)
    completion.add_argument("shell", choices=SHELLS, help="the shell")


def _settings(given: argparse.Namespace) -> CompletionSettings:
    return CompletionSettings(given.shell)
