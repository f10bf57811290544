"""``pyspark-kafka completion``: print a script that completes commands and options."""

from __future__ import annotations

import argparse
from typing import Final

from ..domain.errors import requires_extra
from .arguments import Commands, add_command
from .output import ending_with_the_pipe

SHELLS: Final = ("bash", "zsh", "tcsh")

_COMPLETION: Final = """\
Print a script that completes commands, options and their values in a shell.

bash:  pyspark-kafka completion bash > ~/.local/share/bash-completion/completions/pyspark-kafka
zsh:   pyspark-kafka completion zsh > ~/.zfunc/_pyspark-kafka
       and in ~/.zshrc, before compinit: fpath+=~/.zfunc
tcsh:  pyspark-kafka completion tcsh > ~/.pyspark-kafka.tcsh
       and in ~/.tcshrc: source ~/.pyspark-kafka.tcsh

The script is made by the package shtab, of the extra 'cli'.
"""


def add_completion(commands: Commands) -> None:
    """Add the command ``completion``."""
    summary = "print a script that completes commands and options in a shell"
    completion = add_command(commands, "completion", summary, _COMPLETION, run_completion)
    completion.add_argument("shell", choices=SHELLS, help="the shell")


def run_completion(given: argparse.Namespace) -> int:
    """Print the script, and return the exit status.

    :raises MissingDependencyError: if shtab is not installed.
    """
    with requires_extra("cli", "shtab", "shtab"):
        import shtab

    with ending_with_the_pipe():
        print(shtab.complete(given.parser, given.shell))
    return 0
