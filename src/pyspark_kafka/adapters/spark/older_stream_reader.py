"""The micro-batch reader of Spark 4.0 and 4.1, which pass neither a start nor a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.errors import OptionsError
from ...domain.reading.read_limits import ReadAllAvailable
from .micro_batch_reader import MicroBatchReader
from .tasks import strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.datasource import InputPartition

    from ...domain.partition_offsets import PartitionOffsets
    from .micro_batch_reader import Offsets


@final
class OlderStreamReader(MicroBatchReader):
    """Remembers where the next batch starts.

    Spark calls ``initialOffset`` if the query is new. Otherwise it first calls ``partitions`` with
    the last offsets of its log as start and end (``PythonMicroBatchStream.setLatestSeenOffset``).
    """

    _start: PartitionOffsets | None = None
    _is_new = False

    def initialOffset(self) -> Offsets:  # noqa: N802
        self._is_new = True
        return super().initialOffset()

    def latestOffset(self) -> Offsets:  # type: ignore[override]  # noqa: N802
        with strip_tracebacks():
            stream = self._stream()
            start = stream.initial_offset() if self._start is None else self._start
            self._start = stream.latest_offset(start, stream.default_read_limit)
            return self._return(self._start)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        with strip_tracebacks():
            if start == end and not self._is_new:
                self._check_order()
            self._start = self._checked(end)
        return [] if start == end else super().partitions(start, end)

    def _check_order(self) -> None:
        """Check that no limit was applied before Spark told where the query continues.

        Spark's wrapper for ``Trigger.AvailableNow`` asks for the end of the query first. A limited
        end was counted from the initial offsets: the query would go back to records it has read.

        :raises OptionsError: if one was.
        """
        if self._start is not None and self._options.read_limit != ReadAllAvailable():
            problem = (
                "The limits of this query cannot be used with Trigger.AvailableNow while "
                "'spark.sql.streaming.triggerAvailableNowWrapper.enabled' is 'true'. Set it to "
                "'false', remove the limits, or use Spark 4.2 or newer"
            )
            raise OptionsError([problem])
