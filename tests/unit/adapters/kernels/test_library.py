"""The library of kernels: what is loaded, and what is refused in words."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pyspark_kafka
from kernel_build.build import is_built
from kernel_build.compiler import NEEDED
from kernel_build.sources import find_kernels, sources_of
from kernel_build.targets import here
from pyspark_kafka.adapters.kernels.library import MANIFEST, digest, load_library, this_platform
from pyspark_kafka.domain.errors import KernelLibraryError

PACKAGE = Path(str(pyspark_kafka.__file__)).parent
KERNELS = Path("adapters", "kernels")
CHANGED = Path("adapters", "kafka_format", "decode_cursor.py")
SUM = "kafka_format__sum_sizes"


@pytest.fixture
def package(tmp_path):
    """Return a copy of the package, with its library."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=ignored))


def manifest_of(package: Path) -> dict[str, object]:
    return json.loads((package / KERNELS / MANIFEST).read_text())


def refusal(package: Path) -> str:
    with pytest.raises(KernelLibraryError) as refused:
        load_library(package / KERNELS, package)
    return str(refused.value)


def test_a_kernel_of_an_untouched_copy_has_an_address(package):
    assert load_library(package / KERNELS, package).address(SUM) > 0
    assert is_built(package, here())


def test_a_change_of_a_source_is_refused(package):
    with (package / CHANGED).open("a") as file:
        file.write("\nROWS = 0\n")
    assert f"{CHANGED.as_posix()} has changed since it was built" in refusal(package)
    assert not is_built(package, here())


def test_another_compiler_builds_again(package):
    """Its output may differ; the library runs all the same."""
    manifest = manifest_of(package) | {"compiler": "another"}
    (package / KERNELS / MANIFEST).write_text(json.dumps(manifest))
    assert load_library(package / KERNELS, package).address(SUM) > 0
    assert not is_built(package, here())


def test_sources_are_those_of_constants_too():
    names = {
        path.relative_to(PACKAGE).as_posix() for path in sources_of(find_kernels(PACKAGE), PACKAGE)
    }
    assert names >= {
        "adapters/kafka_format/decode_kernel.py",
        CHANGED.as_posix(),
        "domain/values/errors.py",
    }
    assert names == set(manifest_of(PACKAGE)["sources"])  # type: ignore[call-overload]


def test_an_installation_without_sources(package):
    """Nothing can have changed."""
    (package / CHANGED).unlink()
    assert load_library(package / KERNELS, package).address(SUM) > 0


def test_a_damaged_library_is_refused(package):
    library = package / KERNELS / str(manifest_of(package)["library"])
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    library.write_bytes(content)
    assert "its file is damaged. Install pyspark-kafka again" in refusal(package)
    assert not is_built(package, here())


def test_a_library_of_another_platform_is_refused(package):
    manifest = manifest_of(package) | {"platform": "plan9-vax"}
    (package / KERNELS / MANIFEST).write_text(json.dumps(manifest))
    assert f"it is for plan9-vax, and this is {this_platform()}. Ship the wheel" in refusal(package)


def test_a_library_that_the_system_does_not_load_is_refused(package):
    """As on a file system that is mounted with noexec."""
    manifest = manifest_of(package)
    library = package / KERNELS / str(manifest["library"])
    library.write_bytes(b"no library")
    (package / KERNELS / MANIFEST).write_text(
        json.dumps(manifest | {"digest": digest(b"no library")})
    )
    assert "the system does not load it (" in refusal(package)
    assert "not mounted with noexec" in refusal(package)


@pytest.mark.parametrize("content", [None, "[]", "{", '{"library": "../../x.so"}'])
def test_no_library_is_an_error(package, content):
    path = package / KERNELS / MANIFEST
    path.unlink()
    if content is not None:
        path.write_text(content)
    assert "it is not there. Install pyspark-kafka from a wheel" in refusal(package)


def test_it_is_loaded_from_a_zip(package, tmp_path):
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in package.rglob("*"):
            file.write(path, path.relative_to(tmp_path))
    shutil.rmtree(package)
    before = set(tmp_path.iterdir())
    program = (
        "import tempfile; tempfile.tempdir = '/dev/null/nowhere'\n"
        "from pyspark_kafka.adapters.kernels import library\n"
        f"print(library.__file__, library.kernel_library().address('{SUM}') > 0)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(archive)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert printed.startswith(f"{archive}/")
    assert printed.endswith(" True\n")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_it_has_kernels_and_needs_nothing_but_a_c_library():
    """No name of numba's, of Python's or of numpy's."""
    library = PACKAGE / KERNELS / str(manifest_of(PACKAGE)["library"])
    lines = subprocess.run(
        ["nm", "--dynamic", library], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    needed = {line.split()[-1] for line in lines if " U " in line}
    found = {line.split()[-1] for line in lines if " T " in line}
    assert needed <= NEEDED
    assert found == {kernel.symbol for kernel in find_kernels(PACKAGE)}
