import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native_crashes import CORE_PATTERN

CHILD = """
import ctypes, threading, time

def die():
    all_run.wait()
    ctypes.CDLL(None).__assert_fail(b"is " b"alive", b"file.c", 7, b"die")

all_run = threading.Event()
dead = threading.Thread(target=die)
dead.start()
threading.Thread(target=time.sleep, args=(60,)).start()
all_run.set()
"""
CHILD_ABORTS = f"""
import subprocess, sys

def test_of_a_child():
    subprocess.run([sys.executable, "-c", {CHILD!r}])

def test_after_it():
    pass
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or CORE_PATTERN.read_text().startswith("|"),
    reason="the kernel writes no core files here",
)


@pytest.mark.parametrize("processes", ["-n0", "-n1"])
def test_a_run_in_which_a_process_died_fails_and_shows_where(processes, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]")
    (tmp_path / "test_it.py").write_text(CHILD_ABORTS)
    plugin = ("-p", "tests.native_crashes", "-p", "no:cacheprovider")
    command = (sys.executable, "-m", "pytest", *plugin, processes)
    paths = os.pathsep.join((str(Path(__file__).parents[2]), *sys.path))
    done = subprocess.run(
        (*command, "test_it.py"),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "2 passed" in done.stdout
    assert "test_it.py::test_of_a_child" in done.stdout
    assert "SIGABRT" in done.stdout
    assert "file.c:7: die: Assertion `is alive' failed." in done.stdout
    first, *others = done.stdout.partition("Traceback for thread ")[2].split(
        "Traceback for thread "
    )
    assert " in abort " in first
    assert not any(" in abort " in other for other in others)
