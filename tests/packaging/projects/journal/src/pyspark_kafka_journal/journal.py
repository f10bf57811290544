"""The files: ``<directory>/<topic>/<partition>.jsonl``, a record a line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self, final

from pyspark_kafka.domain.errors import BrokerUnreachableError, KafkaRequestError
from pyspark_kafka.domain.topic_partition import TopicPartition

CREATE_TIME = 0


@final
@dataclass(frozen=True, slots=True)
class JournalRecord:
    """A line; ``timestamp`` in milliseconds since the epoch."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    timestamp_type: int = CREATE_TIME

    @classmethod
    def parse(cls, offset: int, line: bytes) -> Self:
        """Read a line.

        :raises KeyError, TypeError, ValueError: if it is no record.
        """
        fields: Any = json.loads(line)
        if not isinstance(fields, dict):
            raise TypeError(f"not an object: {fields!r}")
        return cls(
            offset,
            _bytes(fields.get("key")),
            _bytes(fields.get("value")),
            tuple((name, _bytes(value)) for name, value in fields.get("headers", ())),
            fields["timestamp"],
        )


@final
class Journal:
    """A directory of topics. Every call looks at the files afresh."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic.

        :raises BrokerUnreachableError: if the directory cannot be read.
        """
        try:
            return {
                topic.name: len(list(topic.glob("*.jsonl")))
                for topic in self._directory.iterdir()
                if topic.is_dir()
            }
        except OSError as error:
            raise BrokerUnreachableError(str(self._directory), 0, str(error)) from error

    def end(self, partition: TopicPartition) -> int | None:
        """Return the number of complete lines, or ``None`` if the partition does not exist.

        :raises BrokerUnreachableError: if the directory cannot be read.
        """
        try:
            with self._file(partition).open("rb") as lines:
                return sum(line.endswith(b"\n") for line in lines)
        except FileNotFoundError:
            self.topics()
            return None

    def records(self, partition: TopicPartition, start: int, end: int) -> Iterator[JournalRecord]:
        """Yield the records of ``[start, end)``, which have to be there.

        :raises KafkaRequestError: if a line is no record.
        """
        with self._file(partition).open("rb") as lines:
            for offset, line in enumerate(islice(lines, start, end), start):
                try:
                    yield JournalRecord.parse(offset, line)
                except (KeyError, TypeError, ValueError) as error:
                    where = f"line {offset + 1} of {self._file(partition)}"
                    raise KafkaRequestError(f"a request for {where}", repr(error)) from error

    def _file(self, partition: TopicPartition) -> Path:
        return self._directory / partition.topic / f"{partition.partition}.jsonl"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
