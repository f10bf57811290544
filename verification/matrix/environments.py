"""Virtual environments with the versions that a cell needs, made by uv, or by pip of the wheel."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from tests.packaging.environments import build, install_wheel

from .cells import Environment
from .project import ROOT, Project, package_name

FOLDER: Final = ROOT / ".venv" / "matrix"
WHEELS: Final = FOLDER / "wheels"


_QUIETLY: Final = ("--quiet", "--find-links", str(WHEELS))


class InstallError(Exception):
    """An environment could not be made: versions conflict, or a package cannot be installed."""


def make_environment(environment: Environment, python: Path, project: Project) -> Path:
    """Make an environment, or bring it up to date, and return its Python."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if environment.is_of_wheel:
        return _with_wheel(environment, python)
    _make_wheel(environment.spark)
    made = FOLDER / environment.name / "bin" / "python"
    _uv("venv", "--quiet", "--allow-existing", "--python", python, made.parents[1])
    constraints = _file(environment, "constraints", _constraints(environment, made, project))
    wanted = _file(environment, "in", lines(requirements(environment, project)))
    exact = _file(environment, "txt", _resolve(made, wanted, "--constraints", constraints))
    _uv("pip", "sync", *_QUIETLY, "--python", made, exact)
    return made


def find_python(version: str) -> Path | None:
    """Return the Python of a version such as ``3.12``: of pyenv, or else from the ``PATH``."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    of_pyenv = (pyenv / "versions").glob(f"{version}.*/bin")
    path = os.pathsep.join([*map(str, of_pyenv), os.environ["PATH"]])
    try:
        return Path(_run("uv", "python", "find", "--system", version, PATH=path).strip())
    except InstallError:
        return None


def _with_wheel(environment: Environment, python: Path) -> Path:
    with tempfile.TemporaryDirectory() as directory:
        wheel = build(ROOT, Path(directory))
        try:
            return install_wheel(
                python, FOLDER / environment.name, wheel, ",".join(environment.extras)
            )
        except subprocess.CalledProcessError as error:
            raise InstallError(str(error)) from error


def requirements(environment: Environment, project: Project) -> tuple[str, ...]:
    """Return what to install: this checkout in place, and what its tests import."""
    return (f"--editable {ROOT}[{','.join(environment.extras)}]", environment.spark, *project.tests)


def only(packages: Collection[str], resolved: str) -> str:
    return lines(line for line in resolved.splitlines() if package_name(line) in packages)


def lines(texts: Iterable[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def installed_versions(python: Path) -> dict[str, str]:
    found = json.loads(_uv("pip", "list", "--quiet", "--format", "json", "--python", python))
    return {package_name(each["name"]): each["version"] for each in found}


def _constraints(environment: Environment, python: Path, project: Project) -> str:
    """Return the lowest versions of what the project itself names, or nothing."""
    if not environment.is_lowest:
        return ""
    extras = [text for extra in environment.extras for text in ("--extra", extra)]
    resolved = _resolve(python, ROOT / "pyproject.toml", "--resolution", "lowest-direct", *extras)
    return only(project.packages(environment.extras), resolved)


def _resolve(python: Path, wanted: Path, *options: str | Path) -> str:
    plain = ("--no-header", "--no-annotate")
    return _uv("pip", "compile", *_QUIETLY, *plain, "--python", python, *options, wanted)


def _file(environment: Environment, kind: str, text: str) -> Path:
    path = FOLDER / f"{environment.name}.{kind}"
    path.write_text(text)
    return path


def _make_wheel(requirement: str) -> None:
    """Make a wheel of PySpark, which has none: pip keeps it for further runs, uv not everywhere."""
    _run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", WHEELS, requirement)


def _uv(*arguments: str | Path) -> str:
    return _run("uv", *arguments)


def _run(module: str, *arguments: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never", **variables},
    )
    if done.returncode:
        raise InstallError(done.stderr.strip())
    return done.stdout
