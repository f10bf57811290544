"""Which packages each part of the library imports, and what it does without the optional ones."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Final

import grimp
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pyspark_kafka
from tests.capability_contract import CapabilityContract
from verification.matrix.project import ROOT, Project

SOURCE: Final = Path(pyspark_kafka.__file__).parent
PROGRAM: Final = Path(__file__).parent / "programs" / "base_install.py"

COLUMNS: Final = {"numpy", "pyarrow"}
IMPORTED: Final = {
    "__init__": {"pyspark"},
    "continuous": {"pyspark"},
    "ports": COLUMNS,
    "application": COLUMNS,
    "adapters/values/avro": COLUMNS,
    "adapters/http": {"urllib3"},
    "adapters/checkpoints": {"fsspec", "gssapi"},
    "adapters/confluent": COLUMNS | {"confluent_kafka"},
    "adapters/letters": COLUMNS,
    "adapters/fetching": {"pyarrow"},
    "adapters/values/json": COLUMNS,
    "adapters/kafka_format": COLUMNS | {"cramjam", "crc32c", "isal", "lz4", "zstandard"},
    "adapters/kafka_python": COLUMNS | {"gssapi", "kafka", "python_socks"},
    "adapters/kernels": {"numpy"},
    "adapters/memory": COLUMNS,
    "adapters/partitioning": COLUMNS,
    "adapters/prometheus": {"prometheus_client"},
    "adapters/values/protobuf": COLUMNS | {"google"},
    "adapters/security": {"aws_msk_iam_sasl_signer", "azure", "botocore", "google"},
    "adapters/spark": {"py4j", "pyarrow", "pyspark"},
    "adapters/stream_sinks": {"pyarrow"},
    "adapters/values/columns": COLUMNS,
    "adapters/values/encoding": COLUMNS,
    "adapters/values/framing": COLUMNS,
    "bootstrap": {"dependency_injector", "pyarrow", "pyspark"},
    "brokers": {"confluent_kafka", "filelock", "kafka", "platformdirs"},
    "cli": {"javaproperties", "py4j", "pyarrow", "pyspark", "rich", "shtab"},
    "testing": COLUMNS | {"confluent_kafka", "dependency_injector", "pytest"},
}
"""The packages that each layer and each adapter imports, also in functions and for types."""


def test_each_part_imports_its_packages():
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        depth = 3 if parts[:2] == ("adapters", "values") else 2
        part = "/".join(parts[:depth]) if parts[0] == "adapters" else parts[0]
        for package in imported(ast.parse(path.read_text())):
            found[part].add(package)
    assert found == IMPORTED


def test_capabilities_have_the_same_folder_in_each_layer():
    page = (ROOT / "docs" / "project" / "architecture.md").read_text()
    firsts = dict(re.findall(r"^\| `(\w+)` \|.*\| `([\w/]+\.py)` \|$", page, re.MULTILINE))
    assert all((SOURCE / first).is_file() for first in firsts.values())
    for layer in ("domain", "ports", "application"):
        folders = {path.parent.name for path in (SOURCE / layer).glob("*/__init__.py")}
        assert folders <= firsts.keys()
        assert len([*(SOURCE / layer).glob("[!_]*.py")]) <= 10


def test_modules_that_all_does_not_list_are_private_to_a_capability(tmp_path, monkeypatch):
    """The same capability in another layer may import them, and so may code of none."""
    files = {
        "sample_rooms/__init__.py": "",
        "sample_rooms/domain/__init__.py": "",
        "sample_rooms/domain/lag/__init__.py": "__all__ = ['named']",
        "sample_rooms/domain/lag/named.py": "from . import hidden",
        "sample_rooms/domain/lag/hidden.py": "",
        "sample_rooms/application/__init__.py": "",
        "sample_rooms/application/lag/__init__.py": "from ...domain.lag import hidden",
        "sample_rooms/application/reading/__init__.py": "from ...domain.lag import named",
        "sample_rooms/application/reading/guest.py": "from ...domain.lag import hidden",
        "sample_rooms/application/tool.py": "from ..domain.lag import hidden",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    layers = ["sample_rooms.domain", "sample_rooms.application"]
    contract = CapabilityContract("", {}, {"layers": layers, "capabilities": ["lag", "reading"]})
    checked = contract.check(grimp.build_graph("sample_rooms", cache_dir=None), verbose=False)
    [found] = checked.metadata["hidden"]
    assert found == ("sample_rooms.application.reading.guest", "sample_rooms.domain.lag.hidden")
    assert not checked.kept


def imported(module: ast.Module) -> Iterator[str]:
    """Yield the packages of others that a module imports."""
    for node in ast.walk(module):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module)]
        packages = {name.partition(".")[0] for name in names}
        yield from packages - sys.stdlib_module_names - {"pyspark_kafka"}


def test_without_any_package_of_an_extra_all_that_needs_none_works():
    base = closure(Project.read().dependencies) | {"pyspark-kafka"}
    missing = [
        package
        for package, distributions in packages_distributions().items()
        if not base & set(map(canonicalize_name, distributions))
    ]
    assert {"pyspark", "requests", "confluent_kafka", "pytest"} <= {*missing}
    # What Windows does not have.
    absent = [*missing, "fcntl", "grp", "pwd", "resource", "termios"]
    done = subprocess.run(
        [sys.executable, PROGRAM, json.dumps(absent)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("error: [KAFKA_BROKER_UNREACHABLE]")


SETTINGS_PROGRAM: Final = """
import sys
import pyspark_kafka.bootstrap.container
assert not {"fastapi", "fastapi.params", "pydantic", "pydantic_settings"} & sys.modules.keys()
from dependency_injector import containers, providers
import fastapi.params, pydantic_settings
configuration = providers.Configuration()
configuration.from_pydantic(pydantic_settings.BaseSettings())
print(configuration())
configuration.from_pydantic(object())
"""


def test_pydantic_and_web_frameworks_are_not_loaded(tmp_path):
    """Both would slow each worker down. Programs can still use them with dependency-injector."""
    (tmp_path / "pydantic.py").write_text("VERSION = '2.0'")
    (tmp_path / "fastapi").mkdir()
    (tmp_path / "fastapi" / "params.py").write_text("import pydantic; Depends = object")
    (tmp_path / "pydantic_settings.py").write_text(
        "import pydantic\nclass BaseSettings: model_dump = lambda self, **_: {'port': 9092}"
    )
    done = subprocess.run(
        [sys.executable, "-c", SETTINGS_PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE.parent)])},
    )
    assert done.stdout == "{'port': 9092}\n", done.stderr
    assert "Unable to recognize settings instance" in done.stderr


def closure(requirements: tuple[str, ...]) -> set[str]:
    """Return the names of distributions that requirements install."""
    found: set[str] = set()
    left = list(requirements)
    while left:
        requirement = Requirement(left.pop())
        name = canonicalize_name(requirement.name)
        is_needed = not requirement.marker or requirement.marker.evaluate({"extra": ""})
        if is_needed and name not in found:
            found.add(name)
            left += requires(name) or ()
    return found
