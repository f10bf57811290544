"""The client ``memory``: adapters over a cluster in this process."""

from __future__ import annotations

from collections.abc import Callable

from ...ports.client import Client
from .cluster import MemoryCluster
from .cluster_describer import MemoryClusterDescriber
from .reading import MemoryOffsetFetcher, MemoryRecordReader
from .stream_client import MemoryStreamClient
from .writing import MemoryRecordWriter, MemoryTransactions


def memory_client(cluster: Callable[[], MemoryCluster]) -> Client:
    """Return a client whose adapters share the cluster that ``cluster`` returns."""
    return Client(
        lambda options: MemoryOffsetFetcher(cluster(), options),
        lambda options: MemoryRecordReader(cluster(), options),
        lambda _options: MemoryRecordWriter(cluster()),
        lambda options: MemoryTransactions(cluster(), options.producer.transaction_timeout_ms),
        lambda source, sink, settings: MemoryStreamClient(cluster(), source, sink, settings),
        cluster_describer=lambda _options: MemoryClusterDescriber(cluster()),
    )
