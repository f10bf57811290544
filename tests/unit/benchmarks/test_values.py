import json
import lzma
from random import Random

import pytest

from benchmarks.values import COMPRESSION_RATIO, json_event, json_events, padded_bytes, random_bytes


@pytest.fixture
def generator():
    """Return a random generator with a fixed seed."""
    return Random("values")  # noqa: S311 - data, and no secret


@pytest.mark.parametrize("make", [random_bytes, padded_bytes, json_event, json_events])
@pytest.mark.parametrize("size", [250, 1_000, 10_000])
def test_values_have_their_size(make, size, generator):
    """A value of any kind has exactly the size that was asked for."""
    assert {len(make(generator, size)) for _ in range(50)} == {size}


def test_values_differ(generator):
    """No two events are the same."""
    assert len({json_event(generator) for _ in range(100)}) == 100


def test_events_are_json(generator):
    """A value of events is an array of events."""
    events = json.loads(json_events(generator, 10_000))
    assert len(events) == 49
    assert all(event["action"] for event in events)


def test_padded_bytes_compress(generator):
    """Padded bytes become about as small as they are said to."""
    size = 10_000
    compressed = len(lzma.compress(padded_bytes(generator, size)))
    assert size / compressed == pytest.approx(COMPRESSION_RATIO, rel=0.1)
