"""A directory, as the contract suites arrange it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import ALL, Capability, Record, World


@final
class JournalWorld(World):
    """A directory, and the client ``journal`` that an entry point brings."""

    capabilities = ALL - {
        Capability.COMPRESSION,
        Capability.CORRUPTION,
        Capability.DELETE_RECORDS,
        Capability.DELETE_TOPICS,
        Capability.GROUPS,
        Capability.LIMITS,
        Capability.LOG_APPEND_TIME,
        Capability.TIMESTAMP_LIMITS,
        Capability.TRANSACTIONS,
    }

    def __init__(self, directory: Path) -> None:
        super().__init__("journal")
        self._directory = directory

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"kafka.bootstrap.servers": str(self._directory)}

    @property
    def unreachable(self) -> Mapping[str, str]:
        return {"kafka.bootstrap.servers": str(self._directory / "nowhere")}

    def topic(self, partitions: int = 1, **_config: str) -> str:
        name = self.fresh_name()
        (self._directory / name).mkdir()
        self.add_partitions(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        for number in range(total):
            (self._directory / topic / f"{number}.jsonl").touch()

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        lines = [
            {
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [[name, _text(value)] for name, value in record.headers],
                "timestamp": record.timestamp,
            }
            for record in records
        ]
        path = self._directory / partition.topic / f"{partition.partition}.jsonl"
        with path.open("a") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")
