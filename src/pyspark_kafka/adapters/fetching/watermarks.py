"""The first and last offsets of a partition's log."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, final

from ...domain.errors import UnknownTopicError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.options import SourceOptions
    from ...domain.topic_partition import TopicPartition
    from ...ports.offset_fetcher import OffsetFetcher


@final
class Watermarks:
    """Asks for watermarks, with a new fetcher each time: only a failing read needs them."""

    def __init__(self, make: Callable[[], OffsetFetcher], options: SourceOptions) -> None:
        self._make = make
        self._options = options

    def of(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset that the broker holds, and the one after the last.

        :raises UnknownTopicError: if the partition does not exist.
        :raises BrokerUnreachableError: if no broker answers.
        """
        with closing(self._make()) as fetcher:
            earliest = fetcher.earliest([partition])
            latest = fetcher.latest([partition])
        if not (earliest and latest):
            option = self._options.subscription.option
            raise UnknownTopicError([partition.topic], option, self._options.bootstrap_servers)
        return earliest[partition], latest[partition]
