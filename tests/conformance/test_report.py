"""Every test of the JVM connector's has one of ours or a reason."""

from .peer import MISSING, NOT_APPLICABLE, PEER_TESTS
from .report import FOLDER, claimed, conformance_page

NAMES = {(suite, name) for suite, names in PEER_TESTS.items() for name in names}
REASONS = NOT_APPLICABLE.keys() | MISSING.keys()
PAGE = FOLDER.parents[1] / "docs" / "reference" / "conformance.md"


def test_every_name_is_covered_or_has_a_reason():
    assert sorted(NAMES - claimed().keys() - REASONS) == []


def test_no_name_is_claimed_that_the_jvm_connector_does_not_have():
    assert sorted((claimed().keys() | REASONS) - NAMES) == []


def test_no_reason_is_given_for_what_is_covered():
    assert sorted(claimed().keys() & REASONS) == []


def test_a_name_has_one_reason():
    assert sorted(NOT_APPLICABLE.keys() & MISSING.keys()) == []


def test_no_name_stands_twice():
    assert len(NAMES) == sum(map(len, PEER_TESTS.values()))


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == conformance_page()
