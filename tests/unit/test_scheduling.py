"""How processes share the tests."""

from __future__ import annotations

from tests.scheduling import scope_of


def test_files_of_the_soak_run_one_after_another() -> None:
    """They are one scope; every other file is its own."""
    assert scope_of("tests/soak/test_kills.py::test_a") == scope_of(
        "tests/soak/test_hostile.py::b[c]"
    )
    assert scope_of("tests/unit/test_docs.py::test_a") == "tests/unit/test_docs.py"
