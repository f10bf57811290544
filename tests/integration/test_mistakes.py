"""The first line that a beginner sees, on the command line and of Spark's Python process."""

import traceback
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource
from pyspark.sql.types import StructType

from pyspark_kafka.__main__ import main
from pyspark_kafka.bootstrap.spark import DefaultSource
from pyspark_kafka.domain.errors import PysparkKafkaError
from tests.mistakes import MISTAKES, Mistake, Query, first_line, name, places_of

from .client_files import connection

ALL = [mistake for group in MISTAKES.values() for mistake in group]
READS = {
    Query.READ: (Query.BATCH, Query.STREAM),
    Query.BATCH: (Query.BATCH,),
    Query.STREAM: (Query.STREAM,),
}
IN_SPARK = [(each, kind) for each in ALL for kind in READS.get(each.query, ())]


def can_be_typed(mistake: Mistake) -> bool:
    """``tail`` takes the options of a stream, but has arguments for some of them."""
    if mistake.query is Query.COMMAND:
        return True
    is_stream = Query.STREAM in READS.get(mistake.query, ())
    return is_stream and None not in mistake.options.values() and not TAILS & mistake.options.keys()


TAILS = {"client", "mode"}
TYPED = [each for each in ALL if can_be_typed(each)]

QUICK = {"kafka.default.api.timeout.ms": "3000", "fetchOffset.numRetries": "1"}


@pytest.fixture(scope="module")
def places(kafka, secured, tmp_path_factory):
    kafka.create_topic("mistakes", 2)
    return places_of(secured, tmp_path_factory.mktemp("mistakes"), "mistakes")


@pytest.fixture
def working(kafka, places, client):
    return {**kafka.options, **QUICK, "client": client, "subscribe": places["topic"]}


def source_of(options: dict[str, str]) -> DataSource:
    return DefaultSource(CaseInsensitiveDict(options))


def plan(options: dict[str, str], kind: Query) -> object:
    source = source_of(options)
    schema = source.schema()
    assert isinstance(schema, StructType)
    if kind is Query.BATCH:
        return source.reader(schema).partitions()
    return source.streamReader(schema).initialOffset()


@pytest.mark.parametrize(("mistake", "kind"), IN_SPARK, ids=name)
def test_in_a_query(mistake, kind, working, places):
    with pytest.raises(PysparkKafkaError) as caught:
        plan(mistake.given(working, places), kind)
    # What Spark's Python process passes on.
    line = first_line("".join(traceback.format_exception(caught.value)))
    assert line.startswith("[KAFKA_")
    assert mistake.sees.format(**places) in line


@pytest.mark.parametrize("mistake", TYPED, ids=name)
def test_on_the_command_line(mistake, working, places, tmp_path, capsys):
    if mistake.query is Query.COMMAND:
        arguments = [each.format(**places) for each in mistake.arguments]
    else:
        arguments = tail(mistake.given(working, places), tmp_path)
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(arguments))
    assert ended.value.code in {1, 2}
    shown = capsys.readouterr()
    assert shown.out == ""
    assert mistake.sees.format(**places) in shown.err.splitlines()[0]


def tail(options: dict[str, str], directory: Path) -> list[str]:
    given = dict(options)
    topic, client = given.pop("subscribe"), given.pop("client")
    settings = {key: given.pop(key) for key in options if key.startswith("kafka.")}
    arguments = [f"--option={key}={text}" for key, text in given.items()]
    return [
        "tail",
        topic,
        "--once",
        "--client",
        client,
        *connection(directory, settings),
        *arguments,
    ]
