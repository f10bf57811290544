"""The outcome of each error in each place where it is raised, as on the page of retries."""

import sys
from importlib import import_module
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from pyspark_kafka.application.continuous.epochs import EpochCommitter
from pyspark_kafka.application.values.schema_cache import SchemaCache
from pyspark_kafka.application.writing.sink_task import SinkTask
from pyspark_kafka.domain.continuous.epochs import Epoch, EpochCoordinator
from pyspark_kafka.domain.continuous.messages import AssignPartitions, TaskFailed
from pyspark_kafka.domain.errors import DriverLostError, FactsError, PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from tests.documents import DOCS
from tests.unit.application.conftest import Kit, offsets, tp
from tests.unit.application.continuous.test_task import TASK, ScriptedClient, ScriptedDriver, run
from tests.unit.application.passing import passing
from tests.unit.application.writing.test_kafka_sink import OPTIONS, Stage

sys.path.append(str(DOCS))

page: Any = import_module("retry_page")
Outcome, Place = page.Outcome, page.Place
RAISED = list(page.raised())
CASES = [(place, outcomes[place], error) for error, outcomes in RAISED for place in outcomes]


def kinds(kind: type[PysparkKafkaError] = PysparkKafkaError) -> set[type[PysparkKafkaError]]:
    children = {each for each in kind.__subclasses__() if each.__module__.startswith("pyspark_")}
    return children.union(*map(kinds, children)) - {FactsError}


def outcome_in_a_task(error: PysparkKafkaError) -> Any:
    writer = Mock(**{"flush.side_effect": error})
    task = SinkTask(writer, Mock(), OPTIONS, Mock())
    with pytest.raises(type(error)):
        task.write([pa.RecordBatch.from_pydict({"value": [b"v"]})])
    return Outcome.FAIL


def outcome_in_a_continuous_query(error: PysparkKafkaError) -> Any:
    driver = ScriptedDriver([AssignPartitions(PartitionOffsets({tp(0): 0, tp(0, "orders"): 0}))])
    client = ScriptedClient(driver, error)
    with pytest.raises(PysparkKafkaError):
        run(driver, client, options={"failOnDataLoss": "true"})
    failed = driver.messages[-1]
    # A task that has lost its driver is missed by it, and started again.
    if isinstance(error, DriverLostError) or not getattr(failed, "is_permanent", False):
        return Outcome.RETRY
    assert isinstance(failed, TaskFailed)
    return Outcome.END


def outcome_in_an_exactly_once_sink(error: PysparkKafkaError) -> Any:
    kit = Kit()
    kit.cluster.create_topic("t", 1)
    stage = Stage(kit)
    failing = passing(stage.transactions, commit=Mock(side_effect=error))
    with pytest.raises(type(error)):
        stage.driver(transactions=failing).commit(0, "q", [stage.run_task(0, 0)])
    return Outcome.END


def outcome_in_a_metadata_log(error: PysparkKafkaError) -> Any:
    log = Mock(**{"add.side_effect": [error, Epoch(0, offsets(5))]})
    committer = EpochCommitter(log, max_outage_s=60)
    coordinator = EpochCoordinator(Epoch(-1, offsets(0)))
    coordinator.assign(TASK, [*offsets(0)])
    coordinator.report(TASK, offsets(5))
    try:
        committer.commit_next(coordinator, is_final=False)
    except type(error):
        return Outcome.END
    committer.commit_next(coordinator, is_final=False)
    assert coordinator.last == Epoch(0, offsets(5))
    return Outcome.RETRY


def outcome_in_a_registry(error: PysparkKafkaError) -> Any:
    schema = Schema(SchemaType.AVRO, "{}")
    cache = SchemaCache(Mock(**{"by_id.side_effect": [error, schema]}))
    try:
        assert cache.by_id(7) == schema
    except type(error):
        return Outcome.FAIL
    return Outcome.RETRY


OUTCOMES: dict[Any, Any] = {
    Place.TASK: outcome_in_a_task,
    Place.CONTINUOUS: outcome_in_a_continuous_query,
    Place.SINK: outcome_in_an_exactly_once_sink,
    Place.LOG: outcome_in_a_metadata_log,
    Place.REGISTRY: outcome_in_a_registry,
}


@pytest.mark.parametrize(
    ("place", "outcome", "error"),
    [pytest.param(*case, id=f"{case[0].name}-{case[2].condition}") for case in CASES],
)
def test_an_error_does_what_the_page_says(place, outcome, error):
    assert OUTCOMES[place](error) is outcome


def test_every_error_states_whether_a_new_attempt_helps():
    """A new class says it itself, or inherits it from one that does."""
    for kind in kinds():
        stating = [each for each in kind.__mro__ if "recovery" in vars(each)]
        assert stating[0] is not PysparkKafkaError, kind
