"""A short round of each trial; ``make trials`` runs more, from other seeds."""

import pytest

from verification.trials.differential import Answer, Differential, difference
from verification.trials.secret_trial import SecretTrial
from verification.trials.spark_values import SparkValues
from verification.trials.value_trial import ValueTrial

from ..spark.random_topics import Row

FORMS = ("avro", "protobuf")
ROW = Row(b"k", b"v", "t", 0, 5, 1_000, 0, None)
ANSWER = Answer(None, [ROW], {"offsets": [{"t": {"0": 6}}]})


def test_a_round_beside_the_jvm_connector(spark, kafka, tmp_path):
    """Batches and a stream that is started again give the same rows, logs and errors."""
    told: list[str] = []
    trial = Differential(spark, kafka, tmp_path, told.append, batches=2, runs=2)
    assert trial.run_round(16), told
    assert trial.counts["rows"] > 1


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        (ANSWER._replace(rows=[ROW._replace(offset=6)]), "offset=6"),
        (ANSWER._replace(rows=[]), "0 rows instead of 1"),
        (ANSWER._replace(log={"offsets": []}), "offsets"),
        (ANSWER._replace(error=ValueError("no rows")), "no rows"),
    ],
    ids=["row", "rows", "log", "error"],
)
def test_a_difference_is_told(ours, words):
    assert not difference(ANSWER, ANSWER)
    assert words in difference(ours, ANSWER)


@pytest.mark.timeout(600)
def test_a_round_with_secrets(secured, tmp_path_factory):
    """Queries that run or fail leave no secret anywhere, and what is leaked on purpose is found."""
    told: list[str] = []
    # Paths of sockets in it must be short.
    folder = tmp_path_factory.mktemp("s")
    trial = SecretTrial(secured, folder, told.append, folder / "kept", uses=3, commands=1)
    assert trial.run_round(3), told
    assert 0 < trial.counts["failed uses"] < 3


def test_a_round_of_values():
    """Values of nested types, of writers with other schemas, and written ones, are as elsewhere."""
    told: list[str] = []
    trial = ValueTrial(told.append, values=40)
    found = [seed for seed in range(12) if not trial.run_round(seed)]
    assert not found, told
    counts = [trial.counts[f"{form} {way}"] for form in FORMS for way in ("read", "write")]
    assert min(counts) > 50


def test_a_round_of_rows_beside_sparks_functions(spark):
    told: list[str] = []
    trial = SparkValues(spark, told.append, rows=50)
    assert trial.run_round(1), told
    assert trial.counts["from_json"] > 20
