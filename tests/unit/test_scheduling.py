"""How processes share the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scheduling import begins_with, processes_for, scope_of

CONFTEST = """
from tests.scheduling import OneSoakAtATime

def pytest_xdist_make_scheduler(config, log):
    return OneSoakAtATime(config, log)
"""
ABORTS = """
import os, resource

def test_aborts():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.abort()

def test_after_it():
    pass
"""
PASSES = "def test_passes(): pass"


@pytest.mark.parametrize(
    ("cores", "gib", "processes"), [(2, 24, 4), (8, 64, 16), (8, 24, 6), (4, 16, 3), (1, 4, 1)]
)
def test_a_machine_has_as_many_processes_as_it_carries(cores, gib, processes):
    assert processes_for(cores, gib * 1024**3) == processes


def test_files_of_the_soak_run_one_after_another():
    assert scope_of("tests/soak/test_kills.py::test_a") == scope_of(
        "tests/soak/test_hostile.py::b[c]"
    )
    assert scope_of("tests/unit/test_docs.py::test_a") == "tests/unit/test_docs.py"


@pytest.mark.parametrize("scope", ["tests/spark/test_sink.py", "tests/conformance/test_report.py"])
def test_half_of_the_processes_begin_with_spark(scope):
    processes = ("gw0", "gw1", "gw2")
    assert [begins_with(each, scope) for each in processes] == [True, False, True]
    assert [begins_with(each, "tests/soak") for each in processes] == [False, True, False]


def test_a_test_that_ends_its_process_fails_and_all_others_run(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number in range(9):
        (tmp_path / f"test_{number}.py").write_text(ABORTS if number == 4 else PASSES)
    options = ["-n", "1", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", tmp_path, tmp_path],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "crashed while running 'test_4.py::test_aborts'" in run.stdout
    assert "1 failed, 9 passed" in run.stdout
