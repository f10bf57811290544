from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.cli.parser import command_parser


def parsed(*argv: str) -> dict[str, Any]:
    parser = command_parser()
    given = vars(parser.parse_args(argv))
    assert given.pop("parser") is parser
    assert callable(given.pop("run"))
    assert callable(given.pop("error"))
    return given


def write_files(folder: Path, **files: str) -> str:
    """Write ``log_0=…`` to the file ``log/0``, and return the path of the folder."""
    for name, content in files.items():
        path = folder / name.replace("_", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(folder)


def refused(argv: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is printed about arguments that end a command with status 2."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err
