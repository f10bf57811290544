from __future__ import annotations

import shutil
import subprocess

import pytest

from pyspark_kafka.cli.completion import completion_script
from pyspark_kafka.cli.parser import command_parser

_ASK = """
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_pyspark_kafka
echo "${{COMPREPLY[@]}}"
"""


def completed(*words: str) -> list[str]:
    """Return how bash completes the last word."""
    given = " ".join(f"'{word}'" for word in ("pyspark-kafka", *words))
    script = completion_script(command_parser(), "bash") + _ASK.format(words=given)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash, "-u"], input=script, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["to"], ["topics"]),
        (["dead-letters", "re"], ["replay"]),
        (["topics", "--part"], ["--partitions"]),
        (["dead-letters", "list", "--off"], ["--offsets"]),
        (["tail", "topics", "--as", "h"], ["hex"]),
        (["topics", "--client", "kafka"], ["kafka-python"]),
        (["tail", "--from", ""], []),
        (["completion", "z"], ["zsh"]),
    ],
    ids=" ".join,
)
def test_words_are_completed(words: list[str], expected: list[str]) -> None:
    """Commands, their options, and values that are known."""
    assert completed(*words) == expected


def test_files_are_completed(tmp_path: object) -> None:
    """An option that takes a file completes names of files."""
    assert completed("lag", "--command-config", f"{tmp_path}"[:-1]) != []


def test_zsh_uses_the_functions_of_bash() -> None:
    """The script enables them."""
    assert completion_script(command_parser(), "zsh").startswith("autoload -U +X bashcompinit")
