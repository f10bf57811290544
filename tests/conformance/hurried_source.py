"""The source with a pool that soon closes its clients, for Spark's workers to import."""

from typing import Final, final

from pyspark_kafka.adapters.spark.data_source import KafkaDataSource
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.bootstrap.spark import ContainerUseCases

POOL: Final = ContainerPool(idle_seconds=4, sink_idle_seconds=4, eviction_interval_seconds=0.1)


@final
class HurriedUseCases(ContainerUseCases):
    """Takes pooled containers from that pool."""

    @property
    def pool(self) -> ContainerPool:
        return POOL


@final
class HurriedSource(KafkaDataSource):
    """``format("hurried")``."""

    use_cases = HurriedUseCases()

    @classmethod
    def name(cls) -> str:
        return "hurried"
