"""The cells of the matrix: environments, and the tests that run in each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from pyspark_kafka.brokers.jars import KAFKA_VERSION

from .project import Project

PYTHONS: Final = ("3.11", "3.12", "3.13")

OLDER_SPARKS: Final = ("4.0", "4.1", "4.2")
"""The minor releases before the newest one."""

BROKERS: Final = ("2.8.2", "3.9.2", KAFKA_VERSION)
"""The newest one of each: the last with ZooKeeper only, the last of 3, and what tests run with."""

WITHOUT_S3: Final = frozenset(
    {
        "kerberos",  # has to be compiled, with Debian's headers
        "s3",  # each release of s3fs needs one of fsspec
    }
)

_SINK: Final = "tests/spark/test_sink.py"
_STREAM: Final = "tests/spark/test_stream.py"

SPARK_TESTS: Final = (
    "tests/spark/test_batch.py::test_rows_are_those_of_the_jvm_connector",
    f"{_STREAM}::test_rows_are_those_of_the_jvm_connector",
    f"{_STREAM}::test_the_jvm_connector_takes_a_checkpoint_over_and_gives_it_back",
    f"{_SINK}::test_rows_become_the_records_that_the_jvm_connector_makes",
    f"{_SINK}::test_our_source_feeds_our_sink",
    f"{_SINK}::test_a_batch_that_spark_runs_again_is_written_again_unless_exactly_once_is_asked_for",
    "tests/spark/test_continuous.py::test_records_go_through_a_function_to_another_topic",
    "tests/spark/test_typed_values.py::test_json_is_read_as_from_json_reads_it",
    "tests/spark/test_reuse.py",
    "tests/spark/test_spark_connect.py",
    "tests/spark/test_pipelines.py",
    "tests/spark/test_demo.py::test_demo",
    "tests/spark/test_older_spark.py",
    "tests/soak/test_kills.py::test_no_record_is_lost_or_doubled_by_a_kill",
    "-W=ignore:unclosed <socket:ResourceWarning",  # PySpark before 4.2 leaves sockets to the GC
)

BROKER_TESTS: Final = (
    "tests/contract/test_offset_fetcher.py",
    "tests/contract/test_record_reader.py",
    "tests/contract/test_record_writer.py",
    "tests/contract/test_transactions.py",
    "tests/contract/test_stream_client.py",
    "-k=not Memory",
)

_NOT_WITH_LOWEST: Final = (
    "s3",
    "storage_waits",  # its servers need s3fs
    "without_credentials",  # of a location on S3
    # Of damaged messages, older parsers of protobuf accept others than newer ones and Spark's.
    "damaged_messages",
    "unknown-group",
    "six-bytes",
)

LOWEST_TESTS: Final = (
    "tests/unit/domain",
    "tests/unit/ports",
    "tests/unit/application",
    "tests/unit/adapters",
    "tests/unit/bootstrap",
    "tests/unit/cli",
    "tests/contract",
    *SPARK_TESTS,
    f"-k=not ({' or '.join(_NOT_WITH_LOWEST)})",
)

S3_TESTS: Final = ("tests/contract/test_metadata_log.py", "-k=s3")

_INSTALLED: Final = "tests/packaging/test_installed.py"
_EXTRAS: Final = "tests/packaging/test_extras.py"
_WITH_SPARK: Final = (
    f"{_EXTRAS}::test_a_guide",
    f"{_EXTRAS}::test_the_demo_on_a_cluster",
    f"{_EXTRAS}::test_a_real_broker",
)
INSTALLED_TESTS: Final[Mapping[str, Sequence[str]]] = {
    "": (
        f"{_INSTALLED}::test_nothing_is_there_by_accident",
        f"{_EXTRAS}::test_a_page_that_needs_no_extra",
        f"{_EXTRAS}::test_help",
        f"{_EXTRAS}::test_commands_without_extras",
        f"{_EXTRAS}::test_a_missing_extra",
        f"{_EXTRAS}::test_a_checkpoint_on_hdfs",
        f"{_EXTRAS}::test_a_schema_registry",
    ),
    "spark": (_INSTALLED, *_WITH_SPARK),
    "spark,confluent": (
        _INSTALLED,
        *_WITH_SPARK,
        f"{_EXTRAS}::test_an_embedded_broker",
        f"{_EXTRAS}::test_the_demo",
        f"{_EXTRAS}::test_a_notebook",
        "-k=not accident",
    ),
    "tls": (f"{_EXTRAS}::test_pkcs12_stores",),
    "s3": (f"{_EXTRAS}::test_a_checkpoint_on_s3",),
    "protobuf": (f"{_EXTRAS}::test_protobuf_values",),
    "prometheus": (f"{_EXTRAS}::test_an_exporter",),
    "cli": (f"{_EXTRAS}::test_completion",),
    "testing": (f"{_EXTRAS}::test_the_tests_of_a_page",),
    "msk": (f"{_EXTRAS}::test_a_token", "-k=msk"),
    "azure": (f"{_EXTRAS}::test_a_token", "-k=azure"),
    "google": (f"{_EXTRAS}::test_a_token", "-k=google"),
    "all": (f"{_EXTRAS}::test_a_page_that_needs_extras", f"{_EXTRAS}::test_all_tests_of_a_page"),
}
"""The tests of the wheel, by the extras that pip installs with it."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment: a Python, and the versions of the dependencies.

    With ``is_lowest`` these are the lowest that ``pyproject.toml`` allows, otherwise the newest.
    ``spark`` is the requirement of PySpark. With ``is_of_wheel`` pip installs the built wheel with
    the extras, and nothing that tests import: they run with the Python of the matrix.
    """

    name: str
    python: str
    spark: str
    extras: tuple[str, ...]
    is_lowest: bool = False
    is_of_wheel: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    name: str
    environment: Environment
    tests: Sequence[str]
    broker: str = KAFKA_VERSION


def all_cells(project: Project) -> tuple[Cell, ...]:
    extras = tuple(name for name in project.extras if name != "kerberos")
    lowest_spark = f"pyspark=={project.lowest('pyspark')}"
    sparks = {
        **{minor: f"pyspark=={minor}.*" for minor in OLDER_SPARKS},
        "newest": next(iter(project.extras["spark"])),
    }
    with_spark = {
        (spark, python): Environment(f"spark-{spark}-python-{python}", python, requirement, extras)
        for spark, requirement in sparks.items()
        for python in PYTHONS
    }
    newest = with_spark["newest", PYTHONS[0]]
    without_s3 = tuple(name for name in project.extras if name not in WITHOUT_S3)
    lowest = Environment("lowest", PYTHONS[0], lowest_spark, without_s3, is_lowest=True)
    lowest_s3 = Environment("lowest-s3", PYTHONS[0], lowest_spark, extras, is_lowest=True)
    return (
        *(Cell(f"kafka-{version}", newest, BROKER_TESTS, version) for version in BROKERS),
        *(Cell(one.name, one, SPARK_TESTS) for one in with_spark.values()),
        Cell("lowest", lowest, LOWEST_TESTS),
        Cell("lowest-s3", lowest_s3, S3_TESTS),
        *(_installed(extras, tests) for extras, tests in INSTALLED_TESTS.items()),
    )


def _installed(extras: str, tests: Sequence[str]) -> Cell:
    names = tuple(filter(None, extras.split(",")))
    name = f"installed-{'-'.join(names) or 'base'}"
    return Cell(name, Environment(name, PYTHONS[0], "", names, is_of_wheel=True), tests)


def chosen(cells: Iterable[Cell], patterns: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells whose names match any of the patterns, or all if there is no pattern."""
    return tuple(
        cell
        for cell in cells
        if not patterns or any(fnmatchcase(cell.name, pattern) for pattern in patterns)
    )
