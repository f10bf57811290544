"""The competitors: their programs, their environments, and their descriptions for the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from pyspark_kafka.brokers.jars import Artifact, JarSet, connector_jars, resolve

from .task import CORES

CLIENT: Final = "confluent-kafka==2.16.1"
"""The client that the loops and Ray Data use."""

FLINK_CONNECTOR: Final = JarSet(
    "flink-sql-connector-kafka-5.0.0-2.2",
    (Artifact("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2"),),
    transitive=False,
)


@final
@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment for a competitor; without requirements, the project's."""

    name: str
    requirements: tuple[str, ...] = ()


PROJECT: Final = Environment("the project's")
RAY: Final = Environment("ray", ("ray[data]==2.60.0", CLIENT))
FLINK: Final = Environment("flink", ("apache-flink==2.2.1",))
QUIX: Final = Environment("quixstreams", ("quixstreams==3.28.1",))
BYTEWAX: Final = Environment("bytewax", ("bytewax==0.21.1", CLIENT))
POLARS: Final = Environment("polars", ("polars==2.1.0", CLIENT))
DUCKDB: Final = Environment("duckdb", ("duckdb==2.0.0", "pyarrow==26.0.1", CLIENT))


@final
@dataclass(frozen=True, slots=True)
class Competitor:
    """A tool in one of its forms."""

    name: str
    program: str
    environment: Environment
    result: str
    """The result of a read."""

    settings: str
    variant: str = ""
    processes: int = 1
    share: int = 1
    """The divisor of the number of records: slower tools read a topic with fewer records."""

    is_ours: bool = False


def jars_of(program: str) -> str:
    """Return the jars that a program needs in addition to its environment, separated by commas."""
    if program == "spark_query":
        return ",".join(map(str, connector_jars()))
    if program == "flink_sql":
        directory = resolve(FLINK_CONNECTOR)
        return ",".join(str(directory / each.file_name) for each in FLINK_CONNECTOR.artifacts)
    return ""


IN_SPARK: Final = "Spark's columns, dropped"
LOCAL: Final = f"`local[{CORES}]`"
LOOP: Final = (
    "`Consumer.consume` of 10,000, with `queued.min.messages=1000000` and "
    "`fetch.queue.backoff.ms=1`; `Producer` with `acks=all`, `linger.ms=50` and "
    "`queue.buffering.max.messages=1000000`"
)
TWO: Final = "two processes, each with half of the partitions"

COMPETITORS: Final = (
    *(
        Competitor(
            f"Spark, {client}",
            "spark_query",
            PROJECT,
            IN_SPARK,
            f"{LOCAL}, `pyspark_kafka.session`, defaults; at least once, `acks=all`",
            client,
            is_ours=True,
        )
        for client in ("kafka-python", "confluent")
    ),
    Competitor(
        "Spark, JVM connector",
        "spark_query",
        PROJECT,
        "Spark's rows, dropped",
        f"{LOCAL}, defaults; at least once, `acks=all`",
        "JVM connector",
    ),
    Competitor(
        "Spark, JVM connector, tuned",
        "spark_query",
        PROJECT,
        "Spark's rows, dropped",
        f"{LOCAL}, larger fetches and batches: see the program",
        "JVM connector, tuned",
    ),
    *(
        Competitor(
            f"No Spark, {client}",
            "record_reader",
            PROJECT,
            "Arrow table",
            f"defaults, {TWO}; at least once, `acks=all`",
            client,
            processes=CORES,
            is_ours=True,
        )
        for client in ("kafka-python", "confluent")
    ),
    Competitor(
        "No Spark, kafka-python, 1 process",
        "record_reader",
        PROJECT,
        "Arrow table",
        "the same in one process",
        "kafka-python",
        is_ours=True,
    ),
    Competitor(
        "Ray Data",
        "ray_data",
        RAY,
        "Arrow blocks in the object store",
        f"`num_cpus={CORES}`, `read_kafka` with defaults; produces with `acks=all` and "
        "`linger.ms=50` from a `Datasink`, since `write_kafka` makes the value of the whole row",
        share=2,
    ),
    Competitor(
        "Flink SQL",
        "flink_sql",
        FLINK,
        "Flink's rows, dropped",
        f"a local cluster, parallelism {CORES}, batch mode, `pipeline.object-reuse`, format `raw`, "
        f"`{FLINK_CONNECTOR.name}.jar`; "
        "at least once, `acks=all`",
    ),
    Competitor(
        "Flink SQL, tuned",
        "flink_sql",
        FLINK,
        "Flink's rows, dropped",
        "the same, with larger fetches and batches of the client: see the program",
        "tuned",
    ),
    Competitor(
        "Quix Streams",
        "quix",
        QUIX,
        "objects, one function call each",
        "one process, since a further one joins its group; defaults: commits every 5 s, at least "
        "once; `acks=all`",
        share=20,
    ),
    Competitor(
        "Bytewax",
        "bytewax_flow",
        BYTEWAX,
        "objects, dropped",
        f"{TWO}, `batch_size=10000`; no recovery store; `acks=all`, and a flush after each batch "
        "is the sink's own",
        processes=CORES,
        share=10,
    ),
    *(
        Competitor(name, program, environment, result, f"{LOOP}; {form}", processes=processes)
        for name, program, environment, result in (
            ("Polars", "polars_loop", POLARS, "Polars DataFrame"),
            ("DuckDB", "duckdb_loop", DUCKDB, "DuckDB table, by Arrow"),
        )
        for form, processes in ((TWO, CORES),)
    ),
    Competitor(
        "Polars, 1 process",
        "polars_loop",
        POLARS,
        "Polars DataFrame",
        "the same in one process",
    ),
)
