"""Modules of this package and its dependencies that each of Spark's Python processes loads."""

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest.mock import Mock

import pyspark
import pytest
from pyspark import daemon
from pyspark.sql.types import BinaryType, StructField, StructType

from pyspark_kafka import DefaultSource
from pyspark_kafka.bootstrap import worker_daemon
from pyspark_kafka.domain.errors import KernelLibraryError

CLIENTS = {"kafka", "confluent_kafka"}
KERNELS = {"pyspark_kafka.adapters.kernels.library"}
CONTAINERS = {"dependency_injector", "pyspark_kafka.bootstrap.container"}

SOURCE = """
from pyspark.sql.types import BinaryType, StructField, StructType
from pyspark_kafka import DefaultSource

schema = StructType([StructField("value", BinaryType())])
options = {"kafka.bootstrap.servers": "127.0.0.1:1", "client": client}
"""


def loaded(program: str, client: str = "") -> set[str]:
    """Return the modules of a new process that has run a program."""
    code = f"client = {client!r}\n{textwrap.dedent(program)}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def arrow():
    """Return the packages of columns that PySpark does not load itself: 4.0 loads numpy."""
    return {"pyarrow", "numpy"} - loaded("import pyspark.sql.datasource")


def test_finding_the_format_loads_nothing_else(arrow):
    found = loaded("from pyspark_kafka import DefaultSource; DefaultSource.name()")
    assert not found & (CLIENTS | KERNELS | CONTAINERS | arrow)
    assert not {"pyspark_kafka.domain.options", "pyspark_kafka.domain.values"} & found


def test_making_a_source_loads_no_container_and_no_arrow(client, arrow):
    """The process that checks options and returns the schema ends before anything is read."""
    found = loaded(SOURCE + "DefaultSource(options | {'subscribe': 't'}).schema()", client)
    assert not found & (KERNELS | CONTAINERS | arrow)


def test_parsing_options_loads_no_arithmetic():
    found = loaded("from pyspark_kafka import parse_sink_options, parse_source_options")
    assert not found & {"statistics", "fractions", "html"}


def test_making_a_source_of_kafka_python_does_not_import_it():
    found = loaded(SOURCE + "DefaultSource(options | {'subscribe': 't'}).schema()", "kafka-python")
    assert not found & CLIENTS


def test_making_a_writer_loads_no_container(client):
    """The process that checks a sink's options ends before anything is written."""
    made = "DefaultSource(options | {'topic': 't'}).writer(schema, False)"
    found = loaded(SOURCE + made, client)
    assert not found & (KERNELS | CONTAINERS)


def test_committing_loads_no_arrow(arrow):
    """The process that commits a batch query has nothing to do."""
    writer = DefaultSource(
        {"kafka.bootstrap.servers": "127.0.0.1:1", "client": "kafka-python", "topic": "t"}
    ).writer(StructType([StructField("value", BinaryType())]), False)
    found = loaded(f"import pickle; pickle.loads({pickle.dumps(writer)!r}).commit([])")
    assert not found & (CLIENTS | KERNELS | CONTAINERS | arrow)


def test_planning_loads_no_kernels(client):
    """The process that plans reads no records."""
    planned = """
    from pyspark_kafka.domain.errors import PysparkKafkaError

    limit = {"kafka.default.api.timeout.ms": "200", "kafka.request.timeout.ms": "100"}
    try:
        DefaultSource(options | limit | {"subscribe": "t"}).reader(schema).partitions()
    except PysparkKafkaError as error:
        print(error)
    """
    found = loaded(SOURCE + textwrap.dedent(planned), client)
    assert "pyspark_kafka.bootstrap.container" in found
    assert not found & KERNELS
    assert "pyarrow.compute" not in found


def test_the_daemon_preloads_what_a_first_task_needs():
    """A forked worker imports nothing of this package and of its clients for a plain read."""
    program = "from pyspark_kafka.bootstrap.worker_daemon import preload; preload()"
    preloaded = loaded(program)
    assert preloaded >= {
        *("pyspark.worker", "pyspark_kafka.bootstrap.spark", "pyspark_kafka.bootstrap.pool"),
        *("pyspark_kafka.adapters.spark.batch_reader", "pyspark_kafka.adapters.spark.sink_writers"),
        *(
            "pyspark_kafka.adapters.kafka_python.record_reader",
            "pyspark_kafka.adapters.kernels.library",
        ),
    }
    assert not any(name.startswith("pyspark_kafka.adapters.values.avro") for name in preloaded)


def test_a_worker_of_the_daemon_imports_nothing_to_build_batches():
    """PyArrow imports pandas for its first value, if no one did so before."""
    preload = "from pyspark_kafka.bootstrap.worker_daemon import preload; preload()"
    build = """
    from pyspark_kafka.adapters.kafka_format.column_buffers import BatchBuilder
    from pyspark_kafka.domain.reading.records import ALL_COLUMNS
    from pyspark_kafka.domain.topic_partition import TopicPartition

    BatchBuilder(TopicPartition("topic", 0), ALL_COLUMNS)
    """
    assert loaded(preload + "\n" + textwrap.dedent(build)) == loaded(preload)


def test_a_pandas_that_cannot_be_imported_does_not_stop_the_daemon(tmp_path):
    (tmp_path / "pandas.py").write_text("raise ValueError('numpy.dtype size changed')\n")
    program = f"""
    sys.path.insert(0, {str(tmp_path)!r})
    from pyspark_kafka.bootstrap.worker_daemon import preload

    preload()
    """
    assert "pyspark_kafka.bootstrap.pool" in loaded("import sys\n" + textwrap.dedent(program))


def test_the_daemon_serves_workers_without_what_it_cannot_load(monkeypatch, caplog):
    """A wheel for another platform must not stop the functions of other packages."""
    served: list[str] = []
    monkeypatch.setattr(worker_daemon, "preload", Mock(side_effect=KernelLibraryError("why", "Do")))
    monkeypatch.setattr(worker_daemon, "prefer_installed", Mock())
    monkeypatch.setattr(daemon, "manager", lambda: served.append("workers"))
    worker_daemon.main()
    assert served == ["workers"]
    [record] = caplog.records
    assert record.getMessage().startswith("Tasks of pyspark_kafka load their modules themselves: ")
    assert "why" in record.getMessage()


ABANDONED_WORKER = """
from socket import socketpair
from pyspark import daemon
from pyspark_kafka.bootstrap import worker_daemon

def manager():
    spark, worker = socketpair()
    spark.close()
    print(daemon.worker(worker, True))

daemon.manager = manager
worker_daemon.main()
"""


def test_a_worker_whose_socket_spark_has_closed_ends_without_a_traceback():
    """Spark closes the sockets of idle workers, and of tasks that need no more rows."""
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED_WORKER, "pyspark.worker"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1"},  # Spark sets it
    )
    assert done.stderr == ""
    assert int(done.stdout) != 0


@pytest.fixture
def home(tmp_path):
    """Return the folder of an installed PySpark, with Spark's archives."""
    home = tmp_path / "site-packages" / "pyspark"
    library = home / "python" / "lib"
    library.mkdir(parents=True)
    (home / "__init__.py").touch()
    for name in ("pyspark.zip", "py4j-0.10-src.zip"):
        (library / name).touch()
    return home


def test_modules_are_imported_from_the_installation_of_their_archive(home):
    """Python caches the bytecode of installed modules, and not that of archives."""
    library, site = home / "python" / "lib", home.parent
    archives = [str(library / "pyspark.zip"), str(library / "py4j-0.10-src.zip")]
    path = ["", *archives, "/elsewhere", str(site)]
    assert worker_daemon.archives_last(path) == ["", "/elsewhere", str(site), *archives]


def test_archives_of_another_spark_stay_first(home):
    """Where ``SPARK_HOME`` is no installed package, the archive may be another version."""
    archive = home / "python" / "lib" / "pyspark.zip"
    path = [str(archive), "/elsewhere"]
    assert worker_daemon.archives_last(path) == path
    (home / "__init__.py").unlink()
    path = [str(archive), str(home.parent)]
    assert worker_daemon.archives_last(path) == path


def test_the_daemon_imports_the_installed_pyspark():
    package = Path(pyspark.__file__).parent
    archives = sorted((package / "python" / "lib").glob("*.zip"))
    assert archives
    path = os.pathsep.join([*map(str, archives), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = (
        "from pyspark_kafka.bootstrap import worker_daemon; worker_daemon.prefer_installed();"
        "import pyspark; print(pyspark.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert Path(done.stdout.strip()).parent == package
