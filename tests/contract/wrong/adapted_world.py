from collections.abc import Callable
from typing import Any, TypeVar

from dependency_injector import providers

from pyspark_kafka.bootstrap.container import Container, SinkContainer
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.testing import MemoryWorld

C = TypeVar("C")


class AdaptedWorld(MemoryWorld):
    """The cluster in memory; ``adapt`` replaces what a provider of its containers makes."""

    def __init__(self, provider: str, adapt: Callable[[Any, MemoryWorld], object]) -> None:
        super().__init__()
        self._provider = provider
        self._adapt = adapt

    def make_container(self, options: SourceOptions) -> Container:
        return self._adapted(super().make_container(options))

    def make_sink_container(self, options: SinkOptions) -> SinkContainer:
        return self._adapted(super().make_sink_container(options))

    def _adapted(self, container: C) -> C:
        provider = getattr(container, self._provider, None)
        if provider is not None:
            provider.override(providers.Object(self._adapt(provider(), self)))
        return container
