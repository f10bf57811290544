"""An error that nobody expects ends no thread in silence: it is logged, or a caller gets it."""

import ast
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import Mock

import pytest

import pyspark_kafka
from pyspark_kafka.adapters.continuous.directory_channel import PollingThread
from pyspark_kafka.adapters.continuous.socket_channel import ConnectionLoop
from pyspark_kafka.adapters.continuous.threads import ThreadTaskRunner
from pyspark_kafka.adapters.kafka_python.sasl import _ask_kdc
from pyspark_kafka.adapters.security import memory_files
from pyspark_kafka.adapters.spark import jobs
from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.application.continuous.query import ContinuousQuery
from pyspark_kafka.application.lag import worker as lag_worker
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions
from pyspark_kafka.testing import await_until

Plant = Callable[[pytest.MonkeyPatch], object]

SOURCE: Final = Path(pyspark_kafka.__file__).parent
TEXT: Final = "planted in a thread"


class PlantedError(RuntimeError):
    """An error that no thread expects."""


def fail(*_: object, **__: object) -> Any:
    raise PlantedError(TEXT)


def connection_loop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConnectionLoop, "_ping", fail)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ConnectionLoop(listener, b"key", lambda _: None)._thread.join()


def piped_secret(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(memory_files, "memoryview", fail, raising=False)
    with memory_files._piped(b"secret") as path:
        Path(path).read_bytes()


def spark_job(patch: pytest.MonkeyPatch) -> str | None:
    patch.setattr(jobs, "InheritableThread", thread_without_session)
    nothing: Any = None
    group: Any = SimpleNamespace(join=fail, describe_failure=str, active_tasks=lambda: 0)
    job = jobs._Job(nothing, group, nothing)
    job._thread.join()
    return job.failure


def thread_without_session(target: Callable[[], None], **named: Any) -> threading.Thread:
    return threading.Thread(target=target, daemon=named["daemon"])


def polling(_: pytest.MonkeyPatch) -> None:
    polled = PollingThread(StoragePath("/channel"), fail, lambda: None)
    await_until(lambda: polled._has_failed)
    polled.close(30)


def task_thread(_: pytest.MonkeyPatch) -> str | None:
    runner = ThreadTaskRunner()
    runner.start(1, fail)
    await_until(lambda: not runner.is_running())
    return runner.failure()


def continuous_query(_: pytest.MonkeyPatch) -> None:
    identity: Any = SimpleNamespace(name="q")
    execution: Any = SimpleNamespace(run=lambda: None)
    progress: Any = SimpleNamespace(ended=fail)
    ContinuousQuery(identity, execution, progress, lambda: None).awaitTermination(30)


def lag(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lag_worker, "_in_offsets", fail)
    worker = lag_worker.LagWorker([], None)
    for run in ("first", "second"):
        progress: Any = SimpleNamespace(run_id=run, sources={}, **dict.fromkeys(FIELDS))
        worker.progressed(progress)
        await_until(lambda: worker._thread is None)


FIELDS: Final = ("query_id", "name", "batch_id", "timestamp_ms", "bad_records")


def pool(patch: pytest.MonkeyPatch) -> None:
    made = ContainerPool(eviction_interval_seconds=0)
    patch.setattr(made, "_take_stale", fail)
    patch.setattr(made, "_idle", [None])
    made._start_evictor()
    await_until(lambda: made._evictor.get() is None)


def look_ups(patch: pytest.MonkeyPatch) -> None:
    framing = ValueFraming(ValueOptions("value", "avro", framing=Framing.CONFLUENT), None)
    answers = iter((lambda: None, fail))
    patch.setattr(ValueFraming, "_known_schema", lambda *_: next(answers)())
    named: Any = (1, 2)
    framing._known_schemas(Mock(), named, None)


PLANTS: Final[dict[str, Plant]] = {
    "adapters/continuous/socket_channel.py::self._run": connection_loop,
    "adapters/kafka_python/sasl.py::ThreadPoolExecutor": lambda _: _ask_kdc(fail),
    "adapters/security/memory_files.py::_write": piped_secret,
    "adapters/spark/jobs.py::self._run": spark_job,
    "adapters/continuous/directory_channel.py::self._run": polling,
    "adapters/continuous/threads.py::self._run": task_thread,
    "adapters/values/framing/value_framing.py::ThreadPoolExecutor": look_ups,
    "application/continuous/query.py::self._run": continuous_query,
    "application/lag/worker.py::self._run": lag,
    "bootstrap/pool.py::self._evict": pool,
}
"""By thread, a function that plants an error in it, and returns or raises what its caller gets."""

REASONS: Final = {
    "adapters/http.py::sockets.end": "the request raises a RequestTimeoutError",
    "adapters/confluent/client_closing.py::closing.run": (
        "adapters/confluent/test_client_closing.py::test_the_error_of_a_client_is_raised"
    ),
    "adapters/name_resolution.py::_ask": (
        "adapters/test_name_resolution.py::test_an_error_is_raised_by_all_calls"
    ),
    "adapters/confluent/idle_watch.py::_watch": (
        "adapters/confluent/test_idle_watch.py::test_an_unexpected_error_ends_no_watch"
    ),
    "application/lag/monitor.py::self._run": (
        "application/lag/test_monitor.py::test_an_unexpected_error_is_a_report"
    ),
}
"""Why other threads need none: the test that plants one, or what ends the wait without it."""


def targets(text: str) -> Iterator[str]:
    """Yield what the threads run that a module starts."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            arguments = [each.value for each in node.keywords if each.arg == "target"] + node.args
            match ast.unparse(node.func).rpartition(".")[2]:
                case "ThreadPoolExecutor" as name:
                    yield name
                case "Thread" | "InheritableThread" | "start_new_thread":
                    yield ast.unparse(arguments[0])
                case "Timer":
                    yield ast.unparse(arguments[1])


def test_every_thread_is_known():
    found = {
        f"{path.relative_to(SOURCE).as_posix()}::{target}"
        for path in SOURCE.rglob("*.py")
        if "testing" not in path.parts
        for target in targets(path.read_text(encoding="utf-8"))
    }
    assert found == PLANTS.keys() | REASONS.keys()
    for reason in REASONS.values():
        file, _, name = reason.partition("::")
        assert not name or f"def {name}(" in (Path(__file__).parent / file).read_text()


def test_what_starts_a_thread():
    text = "Thread(target=a)\nthreading.Timer(1, b)\n_thread.start_new_thread(c, ())\nThreadX(d)"
    assert list(targets(text)) == ["a", "b", "c"]


@pytest.mark.parametrize("thread", PLANTS)
def test_an_unexpected_error_ends_in_words(thread, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "pyspark_kafka")
    try:
        told = PLANTS[thread](monkeypatch)
    except PlantedError as error:
        told = error
    assert TEXT in f"{told}{caplog.text}"
