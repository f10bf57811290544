from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dependency_injector import providers

from pyspark_kafka.adapters.memory.stream_client import MemoryStreamClient
from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.ports.continuous import PolledRecords, StreamClient
from pyspark_kafka.testing import MemoryWorld, StreamClientContract

from .adapter import PassesOn, suite_with


class Passing(PassesOn, StreamClient):
    """Passes every call to another client."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.client = client
        self.cluster = client._cluster

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        polled = self.client.poll(timeout_s, takes_records=takes_records)
        return [made for each in polled for made in self.remade(each)]

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        """Return what is returned for polled records."""
        return [polled]


class _StreamWorld(MemoryWorld):
    """The cluster in memory, with its client of continuous queries in an adapter."""

    def __init__(self, adapter: type[Passing]) -> None:
        super().__init__()
        self._adapter = adapter

    def make_container(self, options: SourceOptions) -> Container:
        container = super().make_container(options)
        client: Any = container.client()

        def wrapped(*given: Any) -> StreamClient:
            return self._adapter(client.stream_client(*given))

        container.client.override(providers.Object(replace(client, stream_client=wrapped)))
        return container


def suite(adapter: type[Passing]) -> type:
    return suite_with(StreamClientContract, world=lambda: _StreamWorld(adapter))
