from __future__ import annotations

from importlib import import_module
from typing import get_args

from pyspark_kafka.__main__ import COMMANDS
from pyspark_kafka.cli.parser import Settings


def test_every_command_runs_a_function() -> None:
    """Settings without a function would fail only when the command is run."""
    assert COMMANDS.keys() == set(get_args(Settings))
    for module, function in COMMANDS.values():
        assert callable(getattr(import_module(f"pyspark_kafka.cli.{module}"), function))
