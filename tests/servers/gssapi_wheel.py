"""Install the package ``gssapi``, which has no wheel for Linux and is therefore built here.

Without MIT Kerberos's headers, Debian's are downloaded, which needs no root. Where there are
none, the tests of Kerberos check that it is refused.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Final

from pyspark_kafka.brokers.jars import cache_directory

from .debian import run, unpack

_PACKAGE: Final = "gssapi>=1.9"
_PIP: Final = (sys.executable, "-m", "pip")
_HEADERS: Final = ("krb5-multidev", "comerr-dev")
"""Debian's packages with the headers of MIT Kerberos and of a library that they include."""


def main() -> None:
    """Install the package, or say in one line why not."""
    if find_spec("gssapi") is not None:
        return
    wheels = cache_directory() / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    try:
        _install(wheels)
    except (OSError, subprocess.SubprocessError) as error:
        reason = str(error).partition("\n")[0]
        print(f"Kerberos is tested as a refusal only, without the package 'gssapi': {reason}")  # noqa: T201


def _install(wheels: Path) -> None:
    if _is_installed_from(wheels):
        return
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-krb5-") as directory:
        _build(wheels, _environment(Path(directory)))
    if not _is_installed_from(wheels):
        raise OSError(f"pip does not install the wheel in {wheels}")


def _is_installed_from(wheels: Path) -> bool:
    options = ("install", "--only-binary", "gssapi", "--find-links", str(wheels))
    return run(*_PIP, *options, _PACKAGE)


def _build(wheels: Path, environment: Mapping[str, str]) -> None:
    options = ("wheel", "--no-deps", "--wheel-dir", str(wheels))
    if not run(*_PIP, *options, _PACKAGE, environment=environment):
        raise OSError("it cannot be built")


def _environment(directory: Path) -> dict[str, str]:
    """Return the variables that the build needs to find headers and library, if it needs any."""
    if which("krb5-config"):
        return {}
    library = find_library("gssapi_krb5")
    if library is None:
        raise OSError("there is no libgssapi_krb5 (Debian's package libgssapi-krb5-2)")
    unpack(_HEADERS, directory)
    headers = directory / "usr" / "include"
    return {
        "C_INCLUDE_PATH": f"{headers}:{headers / 'mit-krb5'}",
        "GSSAPI_COMPILER_ARGS": "-O0 -DHAS_GSSAPI_EXT_H",
        "GSSAPI_LINKER_ARGS": f"-l:{library}",
        "GSSAPI_MAIN_LIB": library,
    }


if __name__ == "__main__":
    main()
