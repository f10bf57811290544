"""The wheel as users install it, with Spark: the README, the tutorials and kinds of queries.

``test_extras.py`` has what runs with other extras, in the cells ``installed-…`` of the matrix.
"""

from pathlib import Path

import pytest

from tests.documents import WITH_SPARK, check_page, check_readme

from .installed import Installed

TUTORIALS = [name for name in WITH_SPARK if name.startswith("get-started/")]
OF_EXTRAS = ("requests", "pandas", "confluent_kafka", "google.protobuf", "s3fs", "pytest")

pytestmark = pytest.mark.timeout(900)  # a pip install, and a Spark of its own

STREAM = """
def run():
    query = (
        spark.readStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", "{servers}")
        .option("subscribe", "{topic}")
        .option("metadataPath", "{directory}/checkpoint/sources/0")
        .load()
        .selectExpr("CAST(value AS STRING)")
        .writeStream.format("parquet")
        .option("checkpointLocation", "{directory}/checkpoint")
        .trigger(availableNow=True)
        .start("{directory}/table")
    )
    query.awaitTermination()
"""


@pytest.fixture(scope="module")
def installed(installed_python, tmp_path_factory):
    return Installed(installed_python, tmp_path_factory.mktemp("shell"))


@pytest.fixture(scope="module")
def run(installed):
    """Yield an interpreter whose Spark is that of all tests here."""
    with installed.interpreter() as run:
        yield run


def test_nothing_is_there_by_accident(run, installed):
    """No package of an extra or of this run can be imported: what runs below needs none."""
    run("import pyspark_kafka, sys; from importlib import import_module")
    home = installed.python.parents[1]
    seen = run("print(pyspark_kafka.__file__, *[path for path in sys.path if 'site-' in path])")
    assert all(Path(path).is_relative_to(home) for path in seen.split())
    for name in OF_EXTRAS:
        given = f"try: import_module({name!r})\nexcept ImportError as error: print(error.name)"
        assert run(given).strip() in {name, name.partition(".")[0]}


def test_the_readme(run, topics, tmp_path):
    """Batch, exactly-once stream, typed JSON and continuous query."""
    check_readme(run, topics, tmp_path)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial(name, run, topics, tmp_path):
    check_page(name, run, topics, tmp_path)


def test_a_stream_that_keeps_its_initial_offsets(run, topics, tmp_path):
    """The offsets kept are those of its first start, before any batch."""
    topic = topics.create()
    topics.values(topic, [b"before"])
    servers = topics.cluster.bootstrap_servers
    run(STREAM.format(servers=servers, topic=topic, directory=tmp_path))
    run("import pyspark_kafka; spark = pyspark_kafka.session(); run()")
    topics.values(topic, [b"after"])
    run("run()")
    assert (
        run(f"print(spark.read.parquet('{tmp_path}/table').collect())") == "[Row(value='after')]\n"
    )
    assert (tmp_path / "checkpoint" / "sources" / "0" / "0").exists()
