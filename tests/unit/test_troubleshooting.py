"""The page of errors: every condition of the code has an entry."""

import re
from pathlib import Path

from pyspark_kafka.domain.security.errors import TlsFailure
from tests.documents import ROOT

PAGE = (ROOT / "docs" / "troubleshoot" / "errors.md").read_text()
SOURCES = [path.read_text() for path in Path(ROOT / "src").rglob("*.py")]
CONDITION = re.compile(r'^    condition = \(?\s*"(\w+)"', re.MULTILINE)
LOSS = re.compile(r'return DataLoss\(\s*"(\w+)"')


def found(pattern: re.Pattern[str]) -> list[str]:
    return [name for source in SOURCES for name in pattern.findall(source)]


def test_every_condition_has_one_entry():
    entries = re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)
    assert sorted(entries) == sorted(found(CONDITION))


def test_every_entry_says_what_to_do():
    for entry in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]:
        name = entry.partition("\n")[0]
        form = rf"{name}\n\n\S.*?\n```text\n\[{name}[\].].*?```\n\nWho can fix it: .*?:\n\n- "
        assert re.match(form, entry, re.DOTALL), name


def test_every_sub_condition_is_listed():
    """The tables have the words after the dot: a case of data loss, or why a handshake failed.

    Records that are skipped on request are a warning and never an error.
    """
    names = {*found(LOSS), *(failure.name for failure in TlsFailure)} - {
        "OVERSIZED_RECORDS_SKIPPED"
    }
    listed = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(names)
