"""The package as users get it on a cluster: in a packed environment, and as a zip."""

import json
import shutil
from pathlib import Path

import pytest

from tests.documents import README, sources
from tests.servers.standalone_spark import standalone_cluster
from tests.spark.topics import SHAPES

from .environments import output_of
from .packed import pack_environment, submit

PROGRAMS = Path(__file__).parent / "programs"
PARTITIONS = 3
SIZES = {0: 120, 2: 30}


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """Run a cluster whose machines do not have the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
            yield url


@pytest.mark.usefixtures("environment")
def test_a_packed_environment_serves_a_cluster(master, wheel, kafka, topics, tmp_path):
    """As the pages say: batches, streams and sinks have every record, also if an executor dies."""
    topic = topics.create(PARTITIONS)
    topics.fill(topic, SIZES)
    copies = {name: topics.create(PARTITIONS) for name in ("batch", "stream", "lost")}
    pack_environment(tmp_path, wheel)
    given = (kafka.bootstrap_servers, topic, json.dumps(copies), tmp_path)
    submit(tmp_path, master, PROGRAMS / "use_cluster.py", *given)
    found = json.loads((tmp_path / "found.json").read_text())
    packages = found.pop("packages")
    assert len(set(packages)) == 2
    assert all("/work/app-" in path and "/environment/lib/" in path for path in packages)
    assert set(found) == {"confluent", "kafka-python", *copies}
    records = json.loads(json.dumps(records_of(SIZES), default=bytes.hex))
    assert [name for name in found if found[name] != records] == []
    killed = (tmp_path / "killed").read_text()
    assert not Path(f"/proc/{killed}").exists()


def records_of(sizes: dict[int, int]) -> list[object]:
    """Return the records with which topics were filled: their fields but topic and offset."""
    return [
        [key, value, partition, 1_000_000 + number, [list(header) for header in headers] or None]
        for partition, size in sizes.items()
        for number in range(size)
        for key, value, headers in [SHAPES[number % len(SHAPES)]]
    ]


@pytest.mark.usefixtures("environment")
def test_a_zip_serves_executors_that_do_not_have_the_package(
    master, bare_python, wheel, kafka, topics, tmp_path
):
    """Shipped as the README says, a batch and a stream read every record in an executor."""
    topic = topics.create(2)
    topics.fill(topic, {1: 25})
    shutil.copy(wheel, tmp_path / "pyspark_kafka.zip")
    shipping = tmp_path / "shipping.py"
    [example] = [source for source in sources(README) if "addPyFile" in source]
    shipping.write_text(example)
    program = PROGRAMS / "read_shipped.py"
    command = (bare_python, program, master, kafka.bootstrap_servers, topic, shipping)
    assert output_of(command).splitlines()[-1] == "25 25"
