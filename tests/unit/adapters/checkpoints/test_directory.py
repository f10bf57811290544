import pytest

from pyspark_kafka.adapters.checkpoints.directory import (
    batch_id_of,
    file_name,
    is_temporary,
    temporary_name,
)


@pytest.mark.parametrize(
    "name",
    [
        ".0.crc",
        "0.crc",
        "1.compact",
        "01",
        "-1",
        "+1",
        "1 ",
        "\u0661",
        "",
        "metadata",
        ".1.0f5b.tmp",
        "9" * 20,
    ],
)
def test_other_files_are_not_batches(name):
    assert batch_id_of(name) is None


@pytest.mark.parametrize("batch_id", [0, 7, 10, 2**63 - 1])
def test_a_batch_is_named_by_its_number(batch_id):
    assert batch_id_of(file_name(batch_id)) == batch_id


def test_a_negative_batch_has_no_name():
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        file_name(-1)


def test_temporary_names_are_unique():
    names = {temporary_name("3") for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith(".3.") and is_temporary(name) for name in names)
    assert not is_temporary(".3.0f5b9a0c-ae5b-4d0c-a1a2-c5a0f4b6b6a1.tmp")
