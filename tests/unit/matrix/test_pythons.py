"""How the matrix finds Pythons."""

from pathlib import Path

import pytest

from tests.matrix.pythons import find_python


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return the folder of a machine with no Python."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin")
    return tmp_path


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_newest_of_pyenv_is_found(machine):
    """Its third number decides, as a number."""
    paths = [
        program(machine / "pyenv" / "versions" / version / "bin" / "python", "echo 9.12")
        for version in ("9.12.9", "9.12.10", "9.12.2")
    ]
    program(machine / "bin" / "python9.12", "echo 9.12")
    assert find_python("9.12") == paths[1]


def test_without_pyenv_the_path_is_searched(machine):
    """The name has the version."""
    python = program(machine / "bin" / "python9.12", "echo 9.12")
    assert find_python("9.12") == python


def test_what_does_not_run_is_no_python(machine):
    """Pyenv has shims of versions that are not chosen, and a link may lead nowhere."""
    program(machine / "bin" / "python9.12", "echo 'pyenv: command not found' >&2; exit 127")
    missing = machine / "pyenv" / "versions" / "9.12.1" / "bin" / "python"
    missing.parent.mkdir(parents=True)
    missing.symlink_to(machine / "nowhere")
    assert find_python("9.12") is None


def test_no_python_at_all(machine):
    """Nothing is raised."""
    assert machine.exists()
    assert find_python("9.12") is None
