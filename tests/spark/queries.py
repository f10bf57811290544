from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka.brokers import KafkaCluster

OURS, PEER = "pyspark_kafka", "kafka"


def read(spark: SparkSession, kafka: KafkaCluster, source: str, **options: str) -> DataFrame:
    """Read a batch; ``__`` in an option's name stands for a dot."""
    return spark.read.format(source).options(**_options(kafka, options)).load()


def read_stream(spark: SparkSession, kafka: KafkaCluster, source: str, **options: str) -> DataFrame:
    """Open a stream; ``__`` in an option's name stands for a dot."""
    return spark.readStream.format(source).options(**_options(kafka, options)).load()


def run_available_now(stream: DataFrame, directory: Path) -> DataFrame:
    """Run a stream from its checkpoint in a directory to its end, and give all of its output."""
    output = str(directory / "output")
    query = (
        stream.writeStream.format("parquet")
        .option("path", output)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return stream.sparkSession.read.schema(stream.schema).parquet(output)


def assert_same_rows(ours: DataFrame, theirs: DataFrame) -> None:
    """Compare the rows of two tables in any order; each table is read once."""
    assert ours.schema == theirs.schema
    # Rows of binary columns and of arrays cannot be ordered.
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))


def _options(kafka: KafkaCluster, options: dict[str, str]) -> dict[str, str]:
    return {**kafka.options, **{name.replace("__", "."): value for name, value in options.items()}}
