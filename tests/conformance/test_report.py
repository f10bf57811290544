"""Every test of the JVM connector's has one of ours or a reason."""

from .peer import MISSING, NOT_APPLICABLE, PEER_TESTS
from .report import FOLDER, claimed, conformance_page

NAMES = {(suite, name) for suite, names in PEER_TESTS.items() for name in names}
REASONS = NOT_APPLICABLE.keys() | MISSING.keys()
PAGE = FOLDER.parents[1] / "docs" / "reference" / "conformance.md"


def test_every_name_is_covered_or_has_a_reason():
    """No test of the JVM connector is ignored silently."""
    assert sorted(NAMES - claimed().keys() - REASONS) == []


def test_no_name_is_claimed_that_the_jvm_connector_does_not_have():
    """A mark, or a reason, for a name that is misspelt stands for nothing."""
    assert sorted((claimed().keys() | REASONS) - NAMES) == []


def test_no_reason_is_given_for_what_is_covered():
    """A reason goes when its test comes."""
    assert sorted(claimed().keys() & REASONS) == []


def test_a_name_has_one_reason():
    """What cannot apply is not missing."""
    assert sorted(NOT_APPLICABLE.keys() & MISSING.keys()) == []


def test_no_name_stands_twice():
    """A name in the table is a test of its own."""
    assert len(NAMES) == sum(map(len, PEER_TESTS.values()))


def test_the_page_is_current():
    """What the page says is what the marks say."""
    assert PAGE.read_text(encoding="utf-8") == conformance_page()
