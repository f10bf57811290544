import pytest

from benchmarks.codecs import SHAPES, Reading, fault_section, speed_section
from benchmarks.plan import MB
from benchmarks.tables import as_text

KB = next(shape for shape in SHAPES if shape.name == "1 kB JSON, lz4")
READINGS = {
    KB: {
        "kafka-python": [Reading(150_000, 0.15, 30), Reading(150_000, 0.3, 60)],
        "confluent": [Reading(150_000, 0.3, 15_000), Reading(150_000, 0.3, 15_000)],
    }
}


def test_each_codec_is_read_with_each_size_of_values():
    assert len({(shape.value_bytes, shape.compression) for shape in SHAPES}) == len(SHAPES) == 15


def test_speeds_are_compared_with_confluent():
    text = as_text(speed_section(READINGS, 150 * MB))
    assert "1 kB JSON, lz4  kafka-python    750,000" in text
    assert text.splitlines()[3].split()[-2:] == ["750", "1.50x"]


def test_page_faults_are_counted_per_100_mb_of_values():
    [comparison] = fault_section(READINGS).comparisons
    assert comparison.of("kafka-python").figures == pytest.approx((20, 40))
    assert comparison.of("confluent").median == pytest.approx(10_000)
