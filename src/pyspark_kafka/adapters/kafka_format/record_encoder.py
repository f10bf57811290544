"""Arrow columns to the record batches that producers send."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import crc32c
import numpy as np

from ...domain.errors import InvalidRecordError
from .batch_headers import HEADER, MAGIC_2
from .compression import Codec, Compressor
from .encode_kernel import NO_ROOM, cut_rows, encode_records, sum_sizes
from .producer_columns import checked, kernel_rows

if TYPE_CHECKING:
    from ...domain.producer.producer_id import ProducerIdAndEpoch
    from .producer_columns import ProducerColumns

    Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

MAX_BUFFERED: Final = 4 * 1024 * 1024
"""The bytes of scratch memory that are kept; a larger batch gets its own."""

_MAX_BYTES: Final = 2**31 - 1
"""The bytes that a batch's length can say."""

_TRANSACTIONAL: Final = 0x10
_NO_EPOCH: Final = -1
_NONE: Final = -1

_FRONT: Final = struct.Struct(">qiibI")
"""Base offset, length, the leader's epoch, magic number and checksum."""

_CHECKED: Final = struct.Struct(">hiqqqhii")
"""What stands between the checksum and the records."""

_LENGTH_AFTER: Final = 12


@final
class RecordEncoder:
    """Makes batches of format 2, as Java's ``DefaultRecordBatch`` and ``DefaultRecord`` write them.

    It uses its memory again: one thread uses it at a time.
    """

    def __init__(self, compressor: Compressor) -> None:
        self._compressor = compressor
        self._scratch: Bytes = np.empty(MAX_BUFFERED, np.uint8)

    def chunks(self, columns: ProducerColumns, rows: Longs, most_bytes: int) -> list[Longs]:
        """Cut rows so that each piece makes a batch of ``most_bytes`` at most, not compressed.

        A record that is larger stands alone.

        :raises IndexError: if there is no such row, or more rows than there are.
        """
        rows = kernel_rows(rows)
        ends: Longs = np.empty(len(rows), np.int64)
        most = most_bytes - HEADER
        pieces = checked(cut_rows(columns.sizes, rows, most, ends))
        if pieces <= 1:
            return [rows] if pieces else []
        bounds = [0, *ends[:pieces].tolist()]
        return [rows[start:end] for start, end in pairwise(bounds)]

    def encode(
        self,
        columns: ProducerColumns,
        rows: Longs,
        producer: ProducerIdAndEpoch,
        base_sequence: int,
    ) -> bytes:
        """Give one batch of rows, in their order; its offsets count from 0.

        :raises IndexError: if there is no such row, or more rows than there are.
        :raises InvalidRecordError: if the batch has more bytes than its length can say.
        :raises ValueError: if there are no rows.
        """
        if not len(rows):
            raise ValueError("a batch has a record at least")
        room, end, base_timestamp, max_timestamp = self._records(columns, kernel_rows(rows))
        codec = self._compressor.codec
        view = room.data
        _CHECKED.pack_into(
            view,
            _FRONT.size,
            codec | (_TRANSACTIONAL if producer.is_transactional else 0),
            len(rows) - 1,
            base_timestamp,
            max_timestamp,
            producer.producer_id,
            producer.epoch,
            _NONE if producer.producer_id == _NONE else base_sequence,
            len(rows),
        )
        if codec is not Codec.NONE:
            return self._compressed(view, self._compressor.compress(view[HEADER:end]))
        checksum = crc32c.crc32c(view[_FRONT.size : end])
        _FRONT.pack_into(view, 0, 0, end - _LENGTH_AFTER, _NO_EPOCH, MAGIC_2, checksum)
        return bytes(view[:end])

    def _compressed(self, view: memoryview, packed: bytes) -> bytes:
        checksum = crc32c.crc32c(packed, crc32c.crc32c(view[_FRONT.size : HEADER]))
        length = HEADER + len(packed) - _LENGTH_AFTER
        _FRONT.pack_into(view, 0, 0, length, _NO_EPOCH, MAGIC_2, checksum)
        return b"".join((view[:HEADER], packed))

    def _records(self, columns: ProducerColumns, rows: Longs) -> tuple[Bytes, int, int, int]:
        """Write records behind the room for a header.

        Gives what they are in, where they end, and the first and the greatest timestamp.
        """
        room = self._scratch
        end, first, greatest = encode_records(columns.arrays, columns.sizes, rows, room, HEADER)
        if end == NO_ROOM:
            size = HEADER + checked(sum_sizes(columns.sizes, rows))
            if size > _MAX_BYTES:
                raise InvalidRecordError(
                    f"its {size} bytes are more than a batch can have", "Make it smaller."
                )
            room = np.empty(size, np.uint8)
            end, first, greatest = encode_records(columns.arrays, columns.sizes, rows, room, HEADER)
        return room, checked(end), first, greatest
