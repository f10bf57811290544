from collections.abc import Sequence
from typing import final

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.ports.checkpoints import MetadataLog


class PassingLog(MetadataLog):
    def __init__(self, log: MetadataLog) -> None:
        self._log = log

    def __str__(self) -> str:
        return str(self._log)

    def add(self, batch_id: int, metadata: bytes) -> bool:
        return self._log.add(batch_id, metadata)

    def get(self, batch_id: int) -> bytes | None:
        return self._log.get(batch_id)

    def latest(self) -> tuple[int, bytes] | None:
        return self._log.latest()

    def batch_ids(self) -> Sequence[int]:
        return self._log.batch_ids()

    def purge(self, threshold: int) -> None:
        self._log.purge(threshold)


@final
class FailingLog(PassingLog):
    """Fails the next ``fails`` writes, before or after the entry is stored."""

    def __init__(self, *, is_stored: bool = True) -> None:
        super().__init__(MemoryMetadataLog())
        self._is_stored = is_stored
        self.fails = 0

    def __str__(self) -> str:
        return "the log"

    def add(self, batch_id: int, metadata: bytes) -> bool:
        if not self.fails:
            return super().add(batch_id, metadata)
        self.fails -= 1
        if self._is_stored:
            super().add(batch_id, metadata)
        raise MetadataLogError("the log", "the connection broke")
