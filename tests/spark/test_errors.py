"""Errors that a user sees when something is wrong."""

import time

import pytest

from .queries import OURS, read, read_stream, run_available_now

NOBODY = "127.0.0.1:1"


@pytest.fixture(params=["batch", "stream"])
def run(request, spark, kafka, tmp_path):
    def batch(**options: str) -> None:
        read(spark, kafka, OURS, **options).count()

    def stream(**options: str) -> None:
        run_available_now(read_stream(spark, kafka, OURS, **options), tmp_path)

    return batch if request.param == "batch" else stream


def test_a_wrong_address_is_one_clear_error(run, client):
    began = time.monotonic()
    with pytest.raises(Exception, match="KAFKA_BROKER_UNREACHABLE") as caught:
        run(
            client=client,
            subscribe="t",
            kafka__bootstrap__servers=NOBODY,
            kafka__default__api__timeout__ms="2000",
        )
    assert time.monotonic() - began < 30
    assert f"No Kafka broker answered at {NOBODY} within 2 s" in str(caught.value)
    assert "'kafka.bootstrap.servers'" in str(caught.value)
    assert "direct cause" not in str(caught.value)
    assert "pyspark_kafka/application" not in str(caught.value)


def test_a_missing_topic_is_one_clear_error(run, client, fresh_name, kafka):
    topic = fresh_name()
    with pytest.raises(Exception, match="KAFKA_UNKNOWN_TOPIC") as caught:
        run(client=client, subscribe=topic, fetchOffset__retryIntervalMs="10")
    expected = f"Topic '{topic}' does not exist at {kafka.bootstrap_servers}."
    assert expected in str(caught.value)
    assert "'subscribe'" in str(caught.value)


def test_secrets_are_not_shown(run, client):
    with pytest.raises(Exception, match=r"kafka\.no\.such\.thing") as caught:
        run(
            client=client,
            subscribe="t",
            kafka__sasl__password="s3cret",  # noqa: S106
            kafka__no__such__thing="1",
        )
    assert "s3cret" not in str(caught.value)
