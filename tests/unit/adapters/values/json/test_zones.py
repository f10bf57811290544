import time
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.encoding.time_zones import zone_names
from pyspark_kafka.adapters.values.json.zones import offsets_of

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
ZONES: Final = (
    *("Europe/Berlin", "America/New_York", "Africa/Casablanca", "Australia/Lord_Howe"),
    *("Asia/Kolkata", "Pacific/Apia", "America/St_Johns", "Europe/Dublin", "Asia/Gaza"),
)


@pytest.mark.parametrize("name", ZONES)
def test_times_that_a_clock_shows_twice_have_the_earlier_offset(name):
    found = offsets_of(name)
    assert found is not None
    offsets = found.tolist()
    zone = ZoneInfo(name)

    @settings(max_examples=300, deadline=None)
    @given(st.datetimes(datetime(1, 1, 1), datetime(2499, 12, 31)))  # noqa: DTZ001  # local times
    def check(local: datetime) -> None:
        seconds = (local - EPOCH) // timedelta(seconds=1)
        place = bisect_right([start for start, _ in offsets], seconds) - 1
        expected = local.replace(tzinfo=zone).utcoffset()
        assert expected is not None
        assert offsets[place][1] == expected.total_seconds()

    check()
    for start, _ in offsets[1:]:
        for seconds in (start - 1, start, start - 1800, start + 1800):
            local = EPOCH + timedelta(seconds=seconds)
            place = bisect_right([first for first, _ in offsets], seconds) - 1
            expected = local.replace(tzinfo=zone).utcoffset()
            assert expected is not None
            assert offsets[place][1] == expected.total_seconds(), local


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("Z", 0),
        ("UTC", 0),
        ("GMT+2", 2),
        ("UT-0330", -3.5),
        ("+1:30", 1.5),
        ("-01:3", -1.05),
        ("+18:00", 18),
        ("EST", -5),
        ("UTC+01:00:36", 1.01),
    ],
)
def test_offsets_have_the_forms_of_java_and_of_older_sparks(name, hours):
    found = offsets_of(name)
    assert found is not None
    assert found[:, 1].tolist() == [round(hours * 3_600)]


@pytest.mark.parametrize(
    "name",
    [
        *("", "+", "+18:01", "+1:2:3", "+130"),
        *("Nowhere", "posix/UTC", "europe/berlin", "..", "/etc/x", "\u00e9", "a b"),
    ],
)
def test_other_names_are_no_zones(name):
    assert offsets_of(name) is None


def test_all_zones_of_a_record_are_found_at_once():
    """A record may name every zone of the machine: their offsets take less than a second."""
    names = zone_names()
    assert {"PST", "EST", "Europe/Berlin"} <= set(names)
    begun = time.process_time()
    assert all(offsets_of(name) is not None for name in names)
    assert (time.process_time() - begun) / len(names) < 0.01
