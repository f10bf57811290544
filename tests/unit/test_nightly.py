"""What runs every night."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.nightly.__main__ import main
from tests.nightly.results import PARTS, Part, Result, page_of


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_is_a_program(part: Part) -> None:
    """Each part names a module that Python can run."""
    module = part.arguments[0]
    assert find_spec(module if module == "pytest" else f"{module}.__main__") is not None


def test_parts_are_chosen_by_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a pattern all parts run, and a pattern that matches nothing is refused."""
    assert main(["--list", "--only", "soak-s*"]) == 0
    assert capsys.readouterr().out.startswith("soak-secured: tests.soak --secured")
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "no part matches nothing" in capsys.readouterr().err


def test_the_page_shows_what_failed_and_what_never_ran() -> None:
    """Rows are in the order of parts, and text of a program does not break the table."""
    page = page_of([Result("simulator", 1, 1_234, "2026-11-26", "a `b` | c")])
    assert "| simulator | failed (1) | 1,234 | 2026-11-26 | a b \\| c |" in page
    assert page.index("| tests | not run | | | |") < page.index("| simulator |")
