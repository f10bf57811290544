"""Encoding Arrow columns into record batches."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Final, final

import crc32c
import numpy as np

from ...domain.writing.batch import NO_PRODUCER_ID
from ...domain.writing.errors import InvalidRecordError
from .batch_headers import HEADER_BYTES, LOG_OVERHEAD, MAGIC_2
from .column_buffers import MAX_BYTES
from .compression import Codec, Compressor
from .encode_kernel import encode_records, split_rows, sum_sizes
from .producer_columns import checked

if TYPE_CHECKING:
    from ...domain.writing.batch import ProducerIdAndEpoch
    from ..kernels.arrays import Int64Array, UInt8Array
    from .producer_columns import ProducerColumns

_TRANSACTIONAL: Final = 0x10
_NO_PARTITION_LEADER_EPOCH: Final = -1
_NO_SEQUENCE: Final = -1

_UP_TO_CHECKSUM: Final = struct.Struct(">qiibI")
"""Base offset, length, partition leader epoch, magic number and checksum."""

_CHECKED_HEADER: Final = struct.Struct(">hiqqqhii")
"""The header's fields after the checksum, which covers them."""


@final
class RecordEncoder:
    """Encodes batches of format 2, as Java's ``DefaultRecordBatch`` and ``DefaultRecord`` do.

    Not thread-safe, as its compressor.
    """

    def __init__(self, compressor: Compressor) -> None:
        self._compressor = compressor

    def chunks(
        self, columns: ProducerColumns, rows: Int64Array, max_bytes: int
    ) -> list[Int64Array]:
        """Split rows into chunks that make a batch of ``max_bytes`` or less, not compressed.

        A larger record is a separate chunk.

        :raises IndexError: if a row does not exist, or there are more rows than the columns have.
        """
        ends: Int64Array = np.empty(len(rows), np.int64)
        count = checked(split_rows(columns.sizes, rows, max_bytes - HEADER_BYTES, ends))
        if count <= 1:
            return [rows] if count else []
        bounds = [0, *ends[:count].tolist()]
        return [rows[start:end] for start, end in pairwise(bounds)]

    def encode(
        self,
        columns: ProducerColumns,
        rows: Int64Array,
        producer: ProducerIdAndEpoch,
        base_sequence: int,
    ) -> bytes | memoryview:
        """Return one batch of rows, in their order, with base offset 0.

        :raises IndexError: if a row does not exist, or there are more rows than the columns have.
        :raises InvalidRecordError: if the batch is larger than 2 GiB.
        :raises ValueError: if there are no rows.
        """
        if not len(rows):
            raise ValueError("a batch needs at least one record")
        buffer, end, base_timestamp, max_timestamp = self._records(columns, rows)
        codec = self._compressor.codec
        view = buffer.data
        _CHECKED_HEADER.pack_into(
            view,
            _UP_TO_CHECKSUM.size,
            codec | (_TRANSACTIONAL if producer.is_transactional else 0),
            len(rows) - 1,
            base_timestamp,
            max_timestamp,
            producer.producer_id,
            producer.epoch,
            _NO_SEQUENCE if producer.producer_id == NO_PRODUCER_ID else base_sequence,
            len(rows),
        )
        if codec is not Codec.NONE:
            compressed = self._compressor.compress(view[HEADER_BYTES:end])
            checksum = crc32c.crc32c(view[_UP_TO_CHECKSUM.size : HEADER_BYTES])
            _finish_header(view, len(compressed), crc32c.crc32c(compressed, checksum))
            return b"".join((view[:HEADER_BYTES], compressed))
        _finish_header(view, end - HEADER_BYTES, crc32c.crc32c(view[_UP_TO_CHECKSUM.size : end]))
        return view[:end]

    @staticmethod
    def _records(columns: ProducerColumns, rows: Int64Array) -> tuple[UInt8Array, int, int, int]:
        """Write records after the space for a header.

        Return their buffer, where they end, and the first and the largest timestamp.
        """
        size = HEADER_BYTES + checked(sum_sizes(columns.sizes, rows))
        if size > MAX_BYTES:
            raise InvalidRecordError(
                f"its {size} bytes are more than a batch can have", "Make it smaller."
            )
        buffer: UInt8Array = np.empty(size, np.uint8)
        end, first, largest = encode_records(
            columns.arrays, columns.sizes, rows, buffer, HEADER_BYTES
        )
        return buffer, checked(end), first, largest


def _finish_header(view: memoryview, records_bytes: int, checksum: int) -> None:
    length = HEADER_BYTES - LOG_OVERHEAD + records_bytes
    _UP_TO_CHECKSUM.pack_into(view, 0, 0, length, _NO_PARTITION_LEADER_EPOCH, MAGIC_2, checksum)
