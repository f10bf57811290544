"""The shipped suites fail for adapters that break a promise of their port."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

import pytest

from pyspark_kafka.testing.world import PATIENCE_S
from tests.slowness import bound_s

from .registry import REGISTRY
from .wrong import suites
from .wrong.adapter import WrongAdapter
from .wrong.registry import FAULTS

PROJECT: Final = Path(__file__).parents[2]
SUITES: Final = Path(suites.__file__)

Outcomes: TypeAlias = dict[tuple[str, str], list[str]]
"""The outcome of each test, by the name of its class and its own name; once for each parameter."""

WRONG: Final = [(port, wrong) for port, faults in FAULTS.items() for wrong in faults.wrong]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Run the suites on right and wrong adapters, and return what came of the tests."""
    right = {_test(suites.right_name(port), wrong) for port, wrong in WRONG}
    wrong = [_test(suites.wrong_name(*fault), fault[1]) for fault in WRONG]
    reports = tmp_path_factory.mktemp("wrong")
    with ThreadPoolExecutor() as pool:
        # Tests wait for what a wrong adapter does not do, and why they fail is not shown.
        of_wrong = pool.submit(_run, wrong, reports / "wrong.xml", 0.25, "--assert=plain")
        return _run(right, reports / "right.xml", PATIENCE_S) | of_wrong.result()


def _test(suite: str, wrong: WrongAdapter) -> str:
    return f"{SUITES}::{suite}::{wrong.caught_by.__name__}"


def _run(tests: Collection[str], report: Path, patience_s: float, *options: str) -> Outcomes:
    """Run tests in another process."""
    pytest_here = [sys.executable, "-m", "pytest", "--noconftest", "-p", "no:cacheprovider"]
    options = ("--tb=line", f"--timeout={bound_s(60)}", f"--junitxml={report}", *options)
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_")}
    ran = subprocess.run(
        [*pytest_here, *options, *tests],
        cwd=PROJECT,
        env={**environment, "PYSPARK_KAFKA_TEST_PATIENCE_S": str(patience_s)},
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(ran.stdout)  # which pytest shows with a failure
    assert ran.returncode in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}, ran.stderr
    return _outcomes(report)


def _outcomes(report: Path) -> Outcomes:
    """Return the outcomes of a JUnit report; an ``error`` is one of set-up or tear-down."""
    outcomes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    # The standard library's parser is safe for a report of one's own.
    for test in ET.parse(report).iter("testcase"):  # noqa: S314
        suite = test.attrib["classname"].rpartition(".")[2]
        name = test.attrib["name"].partition("[")[0]
        outcomes[suite, name] += [found.tag for found in test] or ["passed"]
    return outcomes


@pytest.mark.parametrize("fault", WRONG, ids=lambda fault: f"{fault[0].__name__}-{fault[1]}")
def test_a_wrong_adapter_fails_its_suite(outcomes, fault):
    """The test that it names fails: in its call, not in its set-up, and without being skipped."""
    port, wrong = fault
    found = outcomes[suites.wrong_name(port, wrong), wrong.caught_by.__name__]
    assert "failure" in found, wrong.adapter.__doc__ or str(wrong)


@pytest.mark.parametrize("port", FAULTS, ids=lambda port: port.__name__)
def test_an_adapter_without_a_fault_passes(outcomes, port):
    """Wrong adapters fail for their fault, not for how they are made."""
    ran = {wrong.caught_by.__name__ for wrong in FAULTS[port].wrong}
    found = {name: outcomes[suites.right_name(port), name] for name in ran}
    assert all(set(each) == {"passed"} for each in found.values()), found


@pytest.mark.parametrize("port", FAULTS, ids=lambda port: port.__name__)
def test_each_port_has_wrong_adapters(port):
    wrong = FAULTS[port].wrong
    assert any(issubclass(each.adapter, port) for each in wrong)
    assert len(set(map(str, wrong))) == len(wrong)


def test_every_port_has_wrong_adapters():
    """The suite of a port without any may pass for an adapter that is wrong."""
    assert REGISTRY.keys() <= FAULTS.keys()
