from collections.abc import Callable
from typing import Any, final

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.domain.errors import MetadataLogError


@final
class _Passing:
    def __init__(self, inner: Any, instead: dict[str, Callable[..., object]]) -> None:
        self.inner = inner
        self.name = str(inner)
        self.__dict__ |= instead

    def __str__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def passing(inner: Any, **instead: Callable[..., object]) -> Any:
    """Return what passes calls to ``inner``, but for those of methods that functions replace."""
    return _Passing(inner, instead)


def failing_log(*, is_stored: bool = True) -> Any:
    """Return a log that fails the next ``fails`` writes, before or after the entry is stored."""
    log = MemoryMetadataLog()

    def add(batch_id: int, metadata: bytes) -> bool:
        if not made.fails:
            return log.add(batch_id, metadata)
        made.fails -= 1
        if is_stored:
            log.add(batch_id, metadata)
        raise MetadataLogError("the log", "the connection broke")

    made = passing(log, add=add)
    made.name, made.fails = "the log", 0
    return made
