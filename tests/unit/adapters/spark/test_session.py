"""Which sessions a builder of Spark's makes, without making one."""

import threading
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pyspark_kafka.adapters.spark import session as sessions
from pyspark_kafka.adapters.spark.session import (
    connects_to_server,
    existing_connect_session,
    local_master,
    worker_variables,
)
from tests.slowness import bound_s

URL = "sc://server:15002"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Take away what chooses a mode."""
    for name in (
        "SPARK_REMOTE",
        "SPARK_CONNECT_MODE_ENABLED",
        "MASTER",
        "PYSPARK_GATEWAY_PORT",
        "PYSPARK_SUBMIT_ARGS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", "/nowhere")


def test_a_url_leads_to_a_server(monkeypatch):
    assert connects_to_server({"spark.remote": URL})
    assert not connects_to_server({"spark.master": "local[2]"})
    monkeypatch.setenv("SPARK_REMOTE", URL)
    assert connects_to_server({})
    assert not connects_to_server({"spark.remote": "local[2]"})


@pytest.mark.parametrize("name", ["spark.master", "spark.remote"])
def test_a_local_master_starts_spark_here(name):
    assert local_master({name: "local[2]"})
    assert not local_master({name: "spark://master:7077"})


def test_spark_starts_here_if_no_master_is_named(monkeypatch, tmp_path):
    """Arguments of ``spark-submit`` and ``spark-defaults.conf`` may name one."""
    assert local_master({})
    with monkeypatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
        assert not local_master({})
        assert local_master({"spark.master": "local"})
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn")
    assert not local_master({})


def no_session(_: type[SparkSession]) -> NoReturn:
    raise PySparkRuntimeError(errorClass="NO_ACTIVE_OR_DEFAULT_SESSION", messageParameters={})


def test_no_session_exists_before_it_was_made(monkeypatch):
    """A process that is in the mode of Spark Connect may have no session yet."""
    assert existing_connect_session() is None
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(SparkSession, "active", classmethod(no_session))
    assert existing_connect_session() is None


def test_threads_do_not_share_the_variables_of_workers(monkeypatch):
    """One context has one environment; what a thread registers takes a copy of it."""
    monkeypatch.setattr(sessions, "is_classic", lambda _: True)
    environment = {"PATH": "/bin"}
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(environment=environment))
    taken: dict[str, dict[str, str]] = {}
    is_waiting = threading.Event()

    def register_another() -> None:
        is_waiting.set()
        with worker_variables(spark, {"PATH": "/another"}):
            taken["another"] = dict(environment)

    with worker_variables(spark, {"PATH": "/one", "ONE": "1"}):
        thread = threading.Thread(target=register_another)
        thread.start()
        assert is_waiting.wait(bound_s(20))
        thread.join(0.1)
        taken["one"] = dict(environment)
    thread.join(bound_s(20))
    assert taken == {"one": {"PATH": "/one", "ONE": "1"}, "another": {"PATH": "/another"}}
    assert environment == {"PATH": "/bin"}
