"""Fixtures and Hypothesis profiles of unit tests."""

import os
import sys

import pytest
from hypothesis import settings

# A law holds on a machine that is busy, too.
settings.register_profile("unhurried", parent=settings.default, deadline=None)
# Tests that run once per mutant find the same examples each time.
settings.register_profile(
    "mutants",
    parent=settings.get_profile("unhurried"),
    max_examples=10,
    derandomize=True,
    database=None,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unhurried"))


@pytest.fixture
def without_confluent(monkeypatch):
    """Let confluent-kafka not be installed."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for name in list(sys.modules):
        if name.startswith("pyspark_kafka.adapters.confluent"):
            monkeypatch.delitem(sys.modules, name)
