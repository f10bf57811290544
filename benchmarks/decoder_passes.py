"""Passes over fetched bytes: decoding and copying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, WITHOUT_HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark_kafka.domain.reading.ranges import OffsetRange

    from .topics import Shape

    Pass = Callable[[Shape, "Fetches"], Iterator[int]]
    """Processes all fetches once, and yields numbers of records."""

Fetches = list[tuple["OffsetRange", bytes]]
"""Fetched record batches of a partition, each with its range."""

DECODER: Final = "decoder"
COPY: Final = "memcpy"


def _decode(shape: Shape, fetches: Fetches) -> Iterator[int]:
    partition = fetches[0][0].partition
    decoder = RecordDecoder(partition, ALL_COLUMNS if shape.has_headers else WITHOUT_HEADERS)
    for offsets, data in fetches:
        fetched = FetchedRecords.of(data)
        for batch in decoder.decode(fetched, offsets.from_offset, offsets.until_offset):
            yield batch.num_rows


def _copy(_shape: Shape, fetches: Fetches) -> Iterator[int]:
    target = np.empty(max(len(data) for _, data in fetches), np.uint8)
    for offsets, data in fetches:
        np.copyto(target[: len(data)], np.frombuffer(data, np.uint8))
        yield offsets.size


PASSES: Final[Mapping[str, Pass]] = {DECODER: _decode, COPY: _copy}
