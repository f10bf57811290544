"""The changelog: its form is Keep a Changelog's."""

import re
import tomllib
from datetime import date

import pyspark_kafka
from tests.documents import ROOT

UNRELEASED = "Unreleased"
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d{2}-\d{2})")

TITLE, *RELEASES = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)


def test_it_names_its_format():
    assert TITLE.startswith("# Changelog\n")
    assert "Keep a Changelog" in TITLE
    assert "semantic" in TITLE


def test_releases_have_versions_and_dates_the_newest_first():
    """Only the first may be unreleased; no other version or date is younger than the one above."""
    names = [release.partition("\n")[0] for release in RELEASES]
    dated = names[1:] if names[0] == UNRELEASED else names
    matches = [VERSION.fullmatch(name) for name in dated]
    assert None not in matches, dated
    keys = [tuple(map(int, match.groups()[:3])) for match in matches if match]
    dates = [date.fromisoformat(match[4]) for match in matches if match]
    assert keys == sorted(set(keys), reverse=True)
    assert dates == sorted(dates, reverse=True)


def test_the_package_has_the_version_of_the_newest_release():
    [newest, *_] = [match for release in RELEASES if (match := VERSION.match(release))]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = newest[0].partition(" ")[0]
    assert version == project["version"] == pyspark_kafka.__version__


def test_changes_are_sorted_into_sections():
    for release in RELEASES:
        before, *parts = re.split(r"^### ", release, flags=re.MULTILINE)
        names = [part.partition("\n")[0] for part in parts]
        assert "\n- " not in before, "a change without a section"
        assert names == [name for name in SECTIONS if name in names]
        assert all("\n- " in part for part in parts)
