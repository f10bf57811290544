import pytest

from pyspark_kafka.domain.writing.group_seal import GroupOffset, GroupSeal


@pytest.mark.parametrize(
    "seal",
    [GroupSeal(batch_id=0), GroupSeal(batch_id=12), GroupSeal(None, "r-1"), GroupSeal(12, "r-1")],
)
def test_a_seal_is_read_as_it_was_written(seal):
    assert GroupSeal.of(GroupOffset(5, str(seal))) == seal


def test_seals_have_their_texts():
    """Those of one field are the ones of earlier versions."""
    assert [str(GroupSeal(7)), str(GroupSeal(None, "r")), str(GroupSeal(7, "r"))] == [
        "pyspark-kafka: taken over by batch 7",
        "pyspark-kafka: run r ended",
        "pyspark-kafka: taken over by batch 7, run r ended",
    ]


@pytest.mark.parametrize("text", ["", "a text of another program", "pyspark-kafka: run  ended"])
def test_another_text_excludes_nothing(text):
    assert GroupSeal.of(GroupOffset(5, text)).reason("r", -1) is None


def test_a_seal_of_a_batch_excludes_the_runs_that_began_before_it():
    seal = GroupSeal(batch_id=7)
    assert seal.reason("r", 6) == "a micro-batch query took over the checkpoint with batch 7"
    assert seal.reason("r", 7) is None


def test_a_seal_of_a_run_excludes_that_one_alone():
    seal = GroupSeal(run_id="r")
    assert seal.reason("r", 99) == "its driver stopped the query"
    assert seal.reason("s", 0) is None
