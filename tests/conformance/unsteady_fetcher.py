from typing import Any
from unittest.mock import Mock

from pyspark_kafka.domain.errors import KafkaRequestError
from pyspark_kafka.ports.reading import OffsetFetcher


def unsteady(fetcher: OffsetFetcher, failures: int = 0) -> Mock:
    """Return a fetcher that fails so many requests for partitions first."""
    error = KafkaRequestError("a request for partitions", "the leader is not available")
    errors = [error] * failures

    def partitions(*given: Any) -> object:
        if errors:
            raise errors.pop()
        return fetcher.partitions(*given)

    return Mock(wraps=fetcher, partitions=Mock(side_effect=partitions), close=Mock())
