import shutil
import subprocess
import sys

import pytest

from pyspark_kafka.__main__ import main

_ASK = """
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_shtab_pyspark_kafka
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def script(capsys):
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


def completed(script: str, *words: str) -> list[str]:
    given = " ".join(f"'{word}'" for word in ("pyspark-kafka", *words))
    asking = script + _ASK.format(words=given)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash], input=asking, capture_output=True, text=True, check=True)
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
def test_words_are_completed(words, expected, script):
    assert completed(script, *words) == expected


def test_files_are_completed(tmp_path, script):
    assert completed(script, "lag", "--command-config", f"{tmp_path}"[:-1]) != []


@pytest.mark.parametrize(
    ("shell", "begins"), [("zsh", "#compdef pyspark-kafka"), ("tcsh", "# AUTOMATICALLY GENERATED")]
)
def test_the_script_of_zsh_is_a_function_for_compinit(shell, begins, capsys):
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out.startswith(begins)


def test_without_shtab_the_error_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "pip install 'pyspark-kafka[cli]'" in capsys.readouterr().err
