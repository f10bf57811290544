from collections.abc import Callable, Iterator
from typing import NoReturn

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.memory.writing import MemoryRecordWriter, MemoryTransactions
from pyspark_kafka.adapters.system.logged import LoggingSourceEvents
from pyspark_kafka.application.writing.sink_task import FunctionOutput, SinkTask
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.domain.writing.errors import NullTopicError, SinkSchemaError
from pyspark_kafka.domain.writing.transaction import DeliveryStats, TransactionState, WriteResult
from pyspark_kafka.ports.reading import SourceEvents
from pyspark_kafka.ports.record_schema import record_schema
from pyspark_kafka.ports.writing import Transactions

from ..conftest import Kit


def sink(**options: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": "h:1", "checkpointLocation": "/c", **options}
    return parse_sink_options(given, QueryKind.STREAM)


VALUES = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
EMPTY = VALUES.slice(0, 0)


def test_batches_come_alone_in_a_list_or_not_at_all():
    output = FunctionOutput(sink(topic="t"))
    assert output.batches(VALUES) == [VALUES]
    assert output.batches([VALUES, EMPTY, VALUES]) == [VALUES, VALUES]
    assert not output.batches(None)


@pytest.mark.parametrize("returned", ["text", [VALUES, "text"], 5])
def test_anything_else_is_refused(returned):
    with pytest.raises(TypeError, match="not a RecordBatch, a list of them, or None"):
        FunctionOutput(sink(topic="t")).batches(returned)


def test_rows_without_a_sink_are_refused():
    with pytest.raises(TypeError, match="the query has no sink to write them to"):
        FunctionOutput(None).batches(VALUES)


def test_all_problems_of_the_columns_are_reported():
    batch = pa.RecordBatch.from_pydict({"key": [1], "partition": ["1"]})
    with pytest.raises(SinkSchemaError) as caught:
        FunctionOutput(sink()).batches(batch)
    assert [problem.rpartition(". ")[2] for problem in caught.value.problems] == [
        "Use the topic option for setting a topic.",
        "key must be a(n) string or binary",
        "Required attribute 'value' not found",
        "partition must be a(n) int",
    ]


def test_two_columns_of_one_name_are_refused():
    twice = pa.RecordBatch.from_arrays([VALUES["value"]] * 2, ["value", "value"])
    with pytest.raises(SinkSchemaError, match="Column 'value' exists 2 times"):
        FunctionOutput(sink(topic="t")).batches(twice)


def test_each_schema_is_checked():
    output = FunctionOutput(sink(topic="t"))
    output.batches(VALUES)
    with pytest.raises(SinkSchemaError, match="value must be"):
        output.batches(pa.RecordBatch.from_pydict({"value": [1]}))


def test_records_can_be_returned_as_they_came():
    row = {name: [None] for name in record_schema(ALL_COLUMNS).names}
    records = pa.RecordBatch.from_pydict(row, schema=record_schema(ALL_COLUMNS))
    kept = ["key", "value", "headers", "partition", "timestamp"]
    [batch] = FunctionOutput(sink(topic="t")).batches(records)
    assert batch.schema.names == kept
    [batch] = FunctionOutput(sink()).batches(records)
    assert batch.schema.names == ["topic", *kept]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_texts_may_be_large(kind):
    """Arrow's large types are texts and bytes, too."""
    batch = pa.RecordBatch.from_pydict({"value": pa.array(["a"]).cast(kind)})
    assert FunctionOutput(sink(topic="t")).batches(batch) == [batch]


def test_headers_may_be_arrows_default_list():
    """The name of a list's field is no part of its type."""
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": "k", "value": b"v"}]], kind)
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"a"]), "headers": headers})
    assert FunctionOutput(sink(topic="t")).batches(batch) == [batch]


LEVELS = ("read_uncommitted", "read_committed")


def options(**given: str) -> SinkOptions:
    needed = {"kafka.bootstrap.servers": "memory", "client": "memory"}
    return parse_sink_options({**needed, **given}, QueryKind.STREAM)


def no_transactions() -> NoReturn:
    pytest.fail("transactions were asked for")


def task(
    kit: Kit,
    transactions: Callable[[], Transactions] = no_transactions,
    events: SourceEvents | None = None,
    **given: str,
) -> SinkTask:
    """Make a task that writes to the kit's cluster, and to ``t`` unless options say otherwise."""
    writer = MemoryRecordWriter(kit.cluster)
    return SinkTask(writer, transactions, options(**{"topic": "t", **given}), events or kit.events)


def transactional(kit: Kit) -> Callable[[], Transactions]:
    return lambda: MemoryTransactions(kit.cluster)


def batch(*values: bytes, **columns: list[str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary()), **columns})


def seen(kit: Kit, level: str = LEVELS[0], topic: str = "t") -> list[bytes]:
    given = {"kafka.isolation.level": level, "subscribe": topic}
    container = kit.container(given, QueryKind.BATCH)
    return sorted(
        row["value"]
        for planned in container.batch().plan_input_partitions()
        for found in container.range_read().read(planned, Projection(("value",)))
        for row in found.to_pylist()
    )


def test_rows_are_written(kit):
    written = task(kit).write([batch(b"a"), batch(b"b", b"c")])
    assert written == WriteResult(DeliveryStats(3, 3))
    assert seen(kit) == [b"a", b"b", b"c"]


def test_what_was_delivered_is_reported(kit):
    task(kit).write([batch(b"a"), batch(b"bc")])
    assert kit.events.named("records_delivered") == ((DeliveryStats(2, 3),),)


def test_what_was_delivered_is_logged(kit, caplog):
    with caplog.at_level("INFO", "pyspark_kafka"):
        task(kit, events=LoggingSourceEvents()).write([batch(b"a"), batch(b"bc")])
    assert caplog.messages == ["Delivered 2 records, 3 bytes of keys, values and headers"]


def test_the_column_names_topics_where_no_option_does(kit):
    kit.cluster.create_topic("u")
    rows = batch(b"a", b"b", topic=["t", "u"])
    writer = MemoryRecordWriter(kit.cluster)
    SinkTask(writer, no_transactions, options(), kit.events).write([rows])
    assert (seen(kit), seen(kit, topic="u")) == ([b"a"], [b"b"])
    SinkTask(writer, no_transactions, options(topic="u"), kit.events).write([rows])
    assert (seen(kit), seen(kit, topic="u")) == ([b"a"], [b"a", b"b", b"b"])


def test_a_transaction_is_left_open(kit):
    """The driver ends it: until then a consumer of committed records does not see the rows."""
    written = task(kit, transactional(kit)).write([batch(b"a"), batch(b"b")], "one")
    assert written.delivered == DeliveryStats(2, 2)
    assert written.transaction is not None
    assert written.transaction.transactional_id == "one-0"
    assert [seen(kit, level) for level in LEVELS] == [[b"a", b"b"], []]
    MemoryTransactions(kit.cluster).commit(written.transaction)
    assert seen(kit, "read_committed") == [b"a", b"b"]


@pytest.mark.parametrize("batches", [[], [batch()], [batch(), batch()]])
def test_no_transaction_is_begun_where_there_are_no_rows(kit, batches):
    assert task(kit).write(batches, "one") == WriteResult()


def test_empty_batches_among_others_are_ignored(kit):
    written = task(kit, transactional(kit)).write([batch(), batch(b"a"), batch(), batch(b"b")], "x")
    assert written.delivered.records == 2
    assert written.transaction is not None
    assert written.transaction.epoch == 0


def test_a_row_that_cannot_be_written_aborts_the_transaction(kit):
    doing = SinkTask(MemoryRecordWriter(kit.cluster), transactional(kit), options(), kit.events)
    with pytest.raises(NullTopicError):
        doing.write([batch(b"a", topic=["t"]), batch(b"b", topic=[None])], "one")
    assert kit.cluster.find_transactions("", TransactionState.ONGOING) == {}
    assert [seen(kit, level) for level in LEVELS] == [[b"a"], []]
    assert kit.events.reports == ()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_rows_that_do_not_come_abort_the_transaction(kit, error):
    """An error upstream, or one that kills the task, ends it too; the error stays what it was."""

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(b"a")
        raise error

    with pytest.raises(error):
        task(kit, transactional(kit)).write(failing(), "one")
    assert kit.cluster.find_transactions("", TransactionState.ONGOING) == {}
    assert seen(kit, "read_committed") == []


def test_an_abort_that_fails_does_not_hide_what_it_is_for(kit):
    """The first error is raised; the transaction times out."""
    real = MemoryTransactions(kit.cluster)
    asked: list[str] = []

    def unreachable_later() -> Transactions:
        asked.append("transactions")
        if len(asked) > 1:
            raise BrokerUnreachableError("memory", 1)
        return real

    doing = SinkTask(MemoryRecordWriter(kit.cluster), unreachable_later, options(), kit.events)
    with pytest.raises(NullTopicError):
        doing.write([batch(b"a", topic=["t"]), batch(b"b", topic=[None])], "one")
    assert asked == ["transactions", "transactions"]
    assert list(kit.cluster.find_transactions("", TransactionState.ONGOING)) == ["one-0"]
