"""Use what most queries of tests use of Spark's JVM, and archive the classes of that."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

ROOT = Path(__file__).parents[2]


class Numbers(DataSource):
    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "number long"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return NumbersReader()


class NumbersReader(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:  # noqa: ARG002
        return iter([(0,), (1,), (2,)])


def main(home: Path) -> int:
    """Run a batch and a stream with tasks in Python; return the JVM's exit status."""
    sys.path.insert(0, str(ROOT))
    from tests.spark_home.home import class_archive, java_options

    archive = class_archive(home)
    incomplete = archive.with_suffix(".part")
    options = java_options(f"-XX:ArchiveClassesAtExit={incomplete}")
    spark = (
        SparkSession.Builder()
        .master("local[1]")
        .config("spark.driver.defaultJavaOptions", options)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    run_queries(spark)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc
    spark.stop()
    # Java writes the archive when it ends.
    jvm.stdin.close()
    status: int = jvm.wait()
    incomplete.rename(archive)
    return status


def run_queries(spark: SparkSession) -> None:
    sums = "select id % 2, to_json(struct(sum(id))) from range(9) group by 1 order by 1"
    spark.sql(sums).collect()
    spark.dataSource.register(Numbers)
    spark.read.format(Numbers.name()).load().count()
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as directory:
        rates = spark.readStream.format("rate").load()
        stream = rates.writeStream.option("checkpointLocation", directory).foreachBatch(count)
        stream.trigger(availableNow=True).start().awaitTermination()


def count(rows: DataFrame, _batch: int) -> None:
    rows.count()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
