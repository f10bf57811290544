import pytest

from benchmarks.typed.decoders import LIBRARY, OURS, SHAPES, decoding_rate
from benchmarks.typed.events import ALL_DDL, DDL


@pytest.mark.parametrize("ddl", [DDL, ALL_DDL], ids=["four fields", "all fields"])
@pytest.mark.parametrize("format_name", SHAPES)
def test_values_of_every_format_are_decoded(format_name, ddl):
    assert decoding_rate(OURS, format_name, SHAPES[format_name][0], ddl, 0.0) > 0


def test_pyarrow_decodes_the_same_json():
    assert decoding_rate(LIBRARY, "json", SHAPES["json"][0], DDL, 0.0) > 0
