"""The contents of the distribution, and the cost of importing it."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import pyspark_kafka
from tests.documents import DOCS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = ("brokers", "continuous", "domain", "testing")
PAGE = (DOCS / "reference" / "python-api.md").read_text()
LAYERS = ("domain", "ports", "application", "adapters")


def test_the_wheel_holds_every_module_and_nothing_else(wheel):
    """The wheel that is built from the sdist has the modules of the checkout, types and kernels."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    modules = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    kernels = {
        f"pyspark_kafka/adapters/kernels/kernels.{suffix}" for suffix in ("native.so", "json")
    }
    assert names == modules | kernels | {"pyspark_kafka/py.typed"}


def test_the_wheel_holds_the_license(wheel):
    archive = zipfile.ZipFile(wheel)
    [text] = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
    [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
    assert archive.read(text) == (ROOT / "LICENSE").read_bytes()
    assert b"\nLicense-Expression: Apache-2.0\n" in archive.read(metadata)


def test_the_sdist_holds_the_dashboard_and_the_alert_rules(wheel):
    """The sources include the files that the documentation offers for download."""
    [sdist] = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"docs/operate/grafana-dashboard.json", "docs/operate/prometheus-alerts.yml"} <= names


def test_the_layers_stand_at_the_top():
    for layer in LAYERS:
        assert (ROOT / layer).is_symlink()
        assert (ROOT / layer).resolve() == SOURCE / "pyspark_kafka" / layer


def test_importing_the_package_loads_no_vendor():
    """Spark's lookup imports the package in every new session: it stays light."""
    script = (
        "import sys, pyspark_kafka\n"
        "heavy = {'numpy', 'pyarrow', 'pyspark', 'kafka', 'confluent_kafka',"
        " 'dependency_injector'}\n"
        "sys.exit(str(heavy & sys.modules.keys()) if heavy & sys.modules.keys() else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_public_names_are_there():
    assert all(getattr(pyspark_kafka, name) for name in pyspark_kafka.__all__)
    assert not hasattr(pyspark_kafka, "no_such_name")


@pytest.mark.parametrize("module", MODULES)
def test_the_package_alone_is_imported(module):
    names = re.findall(rf"pyspark_kafka\.{module}[\w.]*", PAGE)
    script = "; ".join(["import pyspark_kafka", *names])
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_reference_has_no_other_modules():
    """Each name of the reference is one of the package, or in a module of the test above."""
    names = {*re.findall(r"pyspark_kafka\.(\w+)", PAGE)}
    assert names - {*pyspark_kafka.__all__} == {*MODULES}
