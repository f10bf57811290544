import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.encoding.time_zones import local_times

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
FIRST, LAST = -1_577_923_200, 253_000_000_000
"""Seconds of the years 1920 and 9987."""

MOMENTS = st.integers(FIRST, LAST).map(lambda second: dt.datetime.fromtimestamp(second, dt.UTC))
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@given(MOMENTS, st.sampled_from(ZONES))
@example(dt.datetime(2040, 7, 1, tzinfo=dt.UTC), "Europe/Berlin")
@example(dt.datetime(2037, 12, 31, 23, 30, tzinfo=dt.UTC), "America/New_York")
@example(dt.datetime(2499, 12, 31, 23, 30, tzinfo=dt.UTC), "Australia/Lord_Howe")
@example(dt.datetime(2500, 7, 1, tzinfo=dt.UTC), "Europe/Berlin")
def test_clocks_show_what_python_says(moment, zone):
    micros = (moment - EPOCH) // dt.timedelta(microseconds=1)
    (local,) = local_times(pa.array([micros], pa.timestamp("us", "UTC")), zone).tolist()
    expected = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=dt.UTC)
    assert local == (expected - EPOCH) // dt.timedelta(microseconds=1)


def test_near_and_far_times_may_stand_side_by_side():
    moments = [dt.datetime(year, 7, 1, 12, tzinfo=dt.UTC) for year in (2020, 2050, 3000)]
    array = pa.array([*moments, None], pa.timestamp("us", "UTC"))[0:3]
    local = local_times(array, "Europe/Berlin")
    assert (local // 3_600_000_000 % 24).tolist() == [14, 14, 14]


def test_an_unknown_zone_is_an_error():
    with pytest.raises(ValueError, match="Mars"):
        local_times(pa.array([0], pa.timestamp("us", "UTC")), "Mars/Base")


@pytest.mark.parametrize(
    ("zone", "seconds"),
    [("+02:00", 7_200), ("-03:30", -12_600), ("GMT+5", 18_000), ("+05:30:15", 19_815)],
)
def test_an_offset_is_added(zone, seconds):
    array = pa.array([EPOCH, None], pa.timestamp("us", "UTC"))
    assert local_times(array, zone)[0] == seconds * 1_000_000
