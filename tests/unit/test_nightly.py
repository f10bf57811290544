import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.nightly_selection import NIGHTLY, runs_nightly
from verification.nightly.__main__ import main
from verification.nightly.results import PARTS, ROOT, Result, page_of, summary_of


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_is_a_program(part):
    """Each part names a module that Python can run."""
    module = part.arguments[0]
    assert find_spec(module if module == "pytest" else f"{module}.__main__") is not None


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_runs_in_one_job_of_the_workflow(part):
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())
    jobs = workflow["jobs"]["nightly"]["strategy"]["matrix"]["parts"]
    assert [part.is_one_of([job]) for job in jobs].count(True) == 1


def test_parts_are_chosen_by_pattern(capsys):
    assert main(["--list", "--only", "soak-s*"]) == 0
    assert capsys.readouterr().out.startswith("soak-secured: verification.soak --secured")
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "no part matches nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("nodeid", "is_nightly"),
    [
        ("tests/packaging/test_installed.py::test_the_readme", True),
        ("tests/packaging/test_distribution.py::test_the_wheel", False),
        ("tests/spark/test_filters.py::test_a[confluent-x]", True),
        ("tests/spark/test_filters.py::test_a[x-kafka-python]", False),
        ("tests/spark/test_batch.py::test_rows_are_those_of_x[confluent]", False),
        ("tests/contract/test_record_reader.py::T::test_a[confluent]", False),
        ("tests/spark/test_secured_clusters.py::test_login[GSSAPI-kafka-python]", False),
        ("tests/spark/test_secured_clusters.py::test_login[PLAIN-confluent]", True),
    ],
)
def test_what_runs_every_night_only(nodeid, *, is_nightly):
    assert runs_nightly(nodeid) == is_nightly


@pytest.mark.parametrize(
    ("named", "has_test"),
    [
        ("tests/spark/test_demo.py", True),
        ("tests/spark/test_demo.py::test_continuous_demo", True),
        ("tests/spark", False),
    ],
)
def test_a_test_whose_file_is_named_is_not_left_out(named, *, has_test):
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", named)
    listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert ("test_continuous_demo" in listed) == has_test


@pytest.mark.parametrize("pattern", NIGHTLY)
def test_a_pattern_matches_a_file(pattern):
    tests = Path(__file__).parents[1]
    paths = [path.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")]
    file = pattern.split("::", 1)[0]
    assert any(re.match(file, path) for path in paths)


def test_the_page_shows_what_failed_and_what_never_ran():
    page = page_of([Result("simulator", 1, 1_234, "2026-11-26", "a `b` | c")])
    assert "| simulator | failed (1) | 1,234 | 2026-11-26 | a b \\| c |" in page
    assert page.index("| tests | not run | | | |") < page.index("| simulator |")


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        ("10%\r100%\n\n=== 3 passed in 2.0s ===\n", "3 passed in 2.0s"),
        (
            "FAILED tests/unit/test_a.py::test_b - AssertionError: 1\n= 1 failed, 2 passed =\n",
            "1 failed, 2 passed: tests/unit/test_a.py::test_b",
        ),
        (
            (
                '{"seed": 1, "records": {"a": 900, "b": 1100}, "missing": {"a": 0, "b": 0}, '
                '"duplicates": {"a": 0, "b": 2}, "error": null}\n'
                '{"seed": 1, "facts": {"counts": {"records": 500, "missing": 3, "duplicates": 0, '
                '"vanished": 7}}, "error": "3 are missing"}\n'
            ),
            (
                "2 rounds: 2,500 records, 3 missing, 2 duplicates, 7 deleted by retention or "
                "compaction; failed: 3 are missing"
            ),
        ),
        ("", ""),
    ],
)
def test_a_part_is_summed_up_in_a_sentence(output, summary):
    assert summary_of(output) == summary
