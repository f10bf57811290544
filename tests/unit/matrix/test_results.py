"""Results of the matrix, and their file."""

from tests.matrix.results import (
    Counts,
    Outcome,
    Result,
    merged,
    read_results,
    write_results,
)

JUNIT = (
    '<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">'
    '<testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="1.5"/>'
    "</testsuites>"
)


def passed(cell: str, date: str = "2026-01-02") -> Result:
    return Result(cell, Outcome.PASSED, date, {"python": "3.11.7"}, Counts(3, 1, 0), 12)


def test_pytest_counts(tmp_path):
    """An error, such as a fixture's, is a failure."""
    (tmp_path / "report.xml").write_text(JUNIT)
    assert Counts.of_junit(tmp_path / "report.xml") == Counts(passed=4, skipped=3, failed=3)


def test_results_are_read_as_they_were_written(tmp_path):
    """Outcomes and counts, too."""
    results = [
        passed("one"),
        Result("two", Outcome.NOT_RUN, "2026-01-03", reason="this machine has no Python 3.13"),
    ]
    write_results(results, tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == results


def test_there_may_be_no_results(tmp_path):
    """Before the first run."""
    assert read_results(tmp_path / "results.json") == []


def test_new_results_replace_older_ones():
    """Cells that did not run keep theirs; those that no longer exist lose theirs."""
    before = [passed("one"), passed("two"), passed("gone")]
    fresh = [passed("two", "2026-02-03"), passed("three")]
    after = merged(before, fresh, ["three", "two", "one"])
    assert after == [passed("three"), passed("two", "2026-02-03"), passed("one")]
