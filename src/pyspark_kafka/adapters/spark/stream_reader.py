"""The micro-batch reader of Spark 4.2 and newer, which pass a start and a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from .micro_batch_reader import MicroBatchReader
from .read_limits import from_spark, to_spark
from .tasks import strip_tracebacks

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

    from .micro_batch_reader import Offsets


@final
class KafkaStreamReader(MicroBatchReader, SupportsTriggerAvailableNow):
    """Supports admission control, and ``Trigger.AvailableNow`` with it."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return one of Spark's five built-in limits, and never a composite one.

        The options' whole limit is applied in ``latestOffset``.
        """
        return to_spark(self._stream().default_read_limit)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        with strip_tracebacks():
            stream = self._stream()
            read_limit = from_spark(limit, stream.default_read_limit)
            return self._return(stream.latest_offset(self._checked(start), read_limit))

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802
        latest = self._stream().report_latest_offset()
        return latest.to_dict() if latest else None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._stream().prepare_for_trigger_available_now()
