"""The log of the schema versions of a stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.checkpoints.schema_version_log import (
    SchemaVersion,
    read_schema_versions,
    write_schema_versions,
)

VERSIONS = st.builds(SchemaVersion, st.text(), st.integers(1, 2**31 - 1))


@given(st.dictionaries(st.sampled_from(["key", "value"]), VERSIONS, min_size=1))
def test_versions_are_read_as_they_were_written(versions: dict[str, SchemaVersion]) -> None:
    """Whatever the subject's name."""
    assert read_schema_versions(write_schema_versions(versions)) == versions


def test_the_layout() -> None:
    """A line with the version of the format, and a JSON object."""
    content = b'v1\n{"key":{"subject":"s","version":1},"value":{"subject":"t-value","version":3}}'
    versions = {"value": SchemaVersion("t-value", 3), "key": SchemaVersion("s", 1)}
    assert write_schema_versions(versions) == content


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff", "it is not text"),
        (b"", "failed to read correct log version"),
        (b"v2\n{}", "maximum supported log version is v1"),
        (b"v1\n", "malformed"),
        (b"v1\n{}", "malformed"),
        (b"v1\n[]", "malformed"),
        (b'v1\n{"value":{"subject":"s"}}', "malformed"),
        (b'v1\n{"value":{"subject":7,"version":1}}', "malformed"),
        (b'v1\n{"value":{"subject":"s","version":0}}', "malformed"),
        (b'v1\n{"value":{"subject":"s","version":true}}', "malformed"),
    ],
)
def test_a_malformed_entry_is_refused(content: bytes, problem: str) -> None:
    """It was written by another program, or by a later version."""
    with pytest.raises(ValueError, match=problem):
        read_schema_versions(content)
