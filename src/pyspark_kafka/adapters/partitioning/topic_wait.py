"""The wait for a topic that the brokers do not know, and may be about to create."""

from __future__ import annotations

import logging
from typing import final

from ...ports.clock import Deadline

log = logging.getLogger(__name__)


@final
class TopicWait:
    """Waits for ``max.block.ms``, as Java's producer does, and logs so once when half is over."""

    def __init__(self, topic: str, max_block_s: float) -> None:
        self._topic = topic
        self._max_block_s = max_block_s
        self._log_at = Deadline.after(max_block_s / 2)
        self.deadline = Deadline.after(max_block_s)

    def topic_unknown(self) -> None:
        """Note that brokers have answered that they do not know the topic."""
        if self._log_at.has_passed:
            self._log_at = Deadline.after(None)
            log.warning(
                "The brokers do not know the topic '%s'. A write waits %g s for it to be created "
                "(kafka.max.block.ms), and then fails",
                self._topic,
                self._max_block_s,
            )
