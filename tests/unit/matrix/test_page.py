"""The page of versions."""

from pyspark_kafka.adapters.spark.spark_api import FEATURES
from tests.matrix.cells import Cell, Environment
from tests.matrix.page import notes_of, page_of
from tests.matrix.project import ROOT, Project
from tests.matrix.results import Counts, Outcome, Result

SETTINGS = """
[project]
requires-python = ">=3.11"
dependencies = [
    # Arrays. The first
    # for this Python.
    "numpy>=1.26",
]

[project.optional-dependencies]
spark = ["pyspark>=4.2,<5"]
all = ["pyspark-kafka[spark]"]
"""


def cell(name: str, python: str = "3.11") -> Cell:
    return Cell(name, Environment(name, python, "pyspark", ("spark",)), ("tests",), "4.3.1")


def versions(**others: str) -> dict[str, str]:
    return {
        "python": "3.11.7",
        "java": "17",
        "kafka": "4.3.1",
        "pyspark": "4.2.0",
        "numpy": "1.26.0",
    } | others


def test_a_run_is_a_row():
    """A row has exact versions, counts, seconds and its date."""
    result = Result(
        "lowest", Outcome.PASSED, "2026-01-02", versions(), Counts(passed=7, skipped=2), seconds=12
    )
    page = page_of(SETTINGS, [cell("lowest")], [result])
    row = "| `lowest` | 3.11.7 | 4.2.0 | 4.3.1 | passed | 7 | 2 | 0 | 12 | 2026-01-02 |"
    assert row in page.splitlines()


def test_what_did_not_run_says_so():
    """A row without a result, too."""
    missing = Result("two", Outcome.NOT_RUN, "2026-01-02", reason="this machine has no Python 3.13")
    page = page_of(SETTINGS, [cell("one"), cell("two", "3.13")], [missing]).splitlines()
    assert "| `one` | 3.11 |  | 4.3.1 | not run |  |  |  |  |  |" in page
    told = "not run: this machine has no Python 3.13"
    assert f"| `two` | 3.13 |  | 4.3.1 | {told} |  |  |  |  | 2026-01-02 |" in page


def test_tested_versions_are_of_runs_that_passed():
    """Each version once, the oldest first, as numbers."""
    results = [
        Result("one", Outcome.PASSED, "2026-01-02", versions(numpy="1.100.0")),
        Result("two", Outcome.PASSED, "2026-01-02", versions(python="3.12.1", numpy="1.26.0")),
        Result("three", Outcome.FAILED, "2026-01-02", versions(pyspark="4.3.0", numpy="2.0.0")),
    ]
    page = page_of(SETTINGS, map(cell, ("one", "two", "three")), results).splitlines()
    assert "| Python | 3.11 or newer | 3.11.7 and 3.12.1 |" in page
    assert "| Spark | 4.2 or newer, older than 5 | 4.2.0 |" in page
    numpy = "1.26 or newer | 1.26.0 and 1.100.0 | always | Arrays. The first for this Python."
    assert f"| `numpy` | {numpy} |" in page


def test_what_older_releases_of_spark_lack_is_what_is_refused():
    """A row for each feature."""
    page = page_of(SETTINGS, [cell("one")], []).splitlines()
    assert "| `pushFilters` | 4.1 | Refused. |" in page
    assert all(any(line.startswith(f"| {each.name} |") for line in page) for each in FEATURES)


def test_before_the_first_run_nothing_is_tested():
    """The page says so."""
    assert "| Kafka brokers | 2.1 or newer | not tested |" in page_of(SETTINGS, [cell("one")], [])


def test_the_comment_of_a_package_is_its_note():
    """All of its lines."""
    page = page_of(SETTINGS, [cell("one")], []).splitlines()
    note = "Arrays. The first for this Python."
    assert f"| `numpy` | 1.26 or newer | not tested | always | {note} |" in page


def test_each_package_has_a_note():
    """The note says why no older version will do."""
    project = Project.read()
    named = {*project.dependencies, *(one for extra in project.extras.values() for one in extra)}
    assert named <= notes_of((ROOT / "pyproject.toml").read_text()).keys()
