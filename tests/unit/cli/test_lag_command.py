from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_kafka.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_missing_rich_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without rich, the command says what to install before it connects."""
    monkeypatch.delitem(sys.modules, "pyspark_kafka.cli.lag_view", raising=False)
    monkeypatch.setitem(sys.modules, "rich", None)
    given = ("lag", "--checkpoint", str(tmp_path), "--bootstrap-servers", "127.0.0.1:1")
    assert main(given) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "error: [KAFKA_MISSING_DEPENDENCY] rich, which draws the table, is not installed."
    )
    assert "pip install 'pyspark-kafka[cli]'" in line
