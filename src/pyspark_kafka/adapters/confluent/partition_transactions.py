"""The transactions of one input partition, in a thread of their own: librdkafka's calls block."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...ports.clock import Deadline
from .transactional_producer import ProducerStoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...domain.topic_partition import TopicPartition
    from .partitioned_rows import PartitionedRows
    from .transactional_producer import TransactionalProducer

_IDLE_S: Final = 1.0
"""How often an idle producer's events are handled."""

_LOOK_S: Final = 0.2
"""How often a wait looks whether a transaction takes too long."""


@final
@dataclass(frozen=True, slots=True)
class PendingOutputs:
    """What was made of the records before ``next_offset``; ``size`` is in bytes.

    Without ``is_polled`` the offset is one that was assigned, whose commit acknowledges nothing.
    """

    parts: Sequence[PartitionedRows]
    next_offset: int
    size: int
    is_polled: bool = True


@final
class PartitionTransactions:
    """Writes the outputs of one input partition; all that come while a transaction ends are next.

    Every method but ``finish`` and ``stop`` raises the error that ended the thread.
    """

    def __init__(
        self,
        partition: TopicPartition,
        create: Callable[[threading.Event], TransactionalProducer],
        wake: Callable[[], None],
        max_bytes: int,
        timeout_s: float,
        overdue: Callable[[], Exception],
    ) -> None:
        """Start to fence earlier producers; ``wake`` is called after each commit.

        A transaction may take ``timeout_s`` in all; ``overdue`` returns the error of one that takes
        longer.
        """
        self.partition = partition
        self._wake = wake
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._overdue = overdue
        self._deadline = Deadline.after(None)
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._pending: list[PendingOutputs] = []
        self._pending_bytes = 0
        self._committed: int | None = None
        self._failure: BaseException | None = None
        self._is_fenced = self._is_writing = self._is_finishing = self._has_ended = False
        self._thread = threading.Thread(
            target=self._run, args=(create,), name=f"transactions of {partition}", daemon=True
        )
        self._thread.start()

    @property
    def is_settled(self) -> bool:
        """Whether all outputs are committed, and their offset was taken."""
        with self._changed:
            return not (self._pending or self._is_writing or self._committed is not None)

    @property
    def is_over(self) -> bool:
        """Whether the thread has ended, and there is nothing to take or to raise."""
        with self._changed:
            return self._has_ended and self._committed is None and self._failure is None

    def await_fenced(self) -> None:
        """Wait until earlier producers are fenced."""
        self._wait(lambda: self._is_fenced)

    def add(self, outputs: PendingOutputs) -> None:
        """Write outputs with the next transaction; wait while too many bytes are pending."""
        self._wait(lambda: not self._has_ended and self._pending_bytes < self._max_bytes)
        with self._changed:
            self._pending.append(outputs)
            self._pending_bytes += outputs.size
            self._changed.notify_all()

    def take_committed(self) -> int | None:
        """Return the offset that was committed since the last call, if outputs were."""
        with self._changed:
            self._raise_failure()
            committed, self._committed = self._committed, None
            return committed

    def finish(self) -> None:
        """End the thread once all outputs are committed; do not wait for it."""
        with self._changed:
            self._is_finishing = True
            self._changed.notify_all()

    def await_end(self) -> None:
        """Wait until all outputs are committed, and the thread has ended."""
        self.finish()
        self._wait(lambda: self._has_ended)

    def stop(self) -> None:
        """End the thread after its current call; what is not committed may be or not."""
        self._stopped.set()
        self.finish()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout_s)

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            while True:
                self._raise_failure()
                if condition():
                    return
                if self._has_ended:
                    raise ProducerStoppedError
                self._changed.wait(_LOOK_S)

    def _raise_failure(self) -> None:
        """Raise the error that ended the thread, or the one of a transaction that takes too long.

        While a coordinator is down, ``rd_kafka_send_offsets_to_transaction`` can wait for longer
        than its time-out: minutes with librdkafka 2.16.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_writing and self._deadline.has_passed:
            raise self._overdue()

    def _run(self, create: Callable[[threading.Event], TransactionalProducer]) -> None:
        try:
            producer = create(self._stopped)
            try:
                self._write_all(producer)
            finally:
                producer.close()
        except ProducerStoppedError:
            return
        except BaseException as error:  # noqa: BLE001  # the thread that polls raises it
            with self._changed:
                self._failure = error
                self._changed.notify_all()
            self._wake()
        finally:
            with self._changed:
                self._has_ended = True
                self._changed.notify_all()

    def _write_all(self, producer: TransactionalProducer) -> None:
        producer.fence()
        with self._changed:
            self._is_fenced = True
            self._changed.notify_all()
        while pending := self._take_pending(producer):
            parts = [part for outputs in pending for part in outputs.parts]
            next_offset = pending[-1].next_offset
            producer.write(parts, self.partition, next_offset)
            with self._changed:
                if any(outputs.is_polled for outputs in pending):
                    self._committed = next_offset
                self._is_writing = False
            self._wake()

    def _take_pending(self, producer: TransactionalProducer) -> list[PendingOutputs]:
        """Wait for outputs; return none at the end."""
        with self._changed:
            while not (self._pending or self._is_finishing):
                if not self._changed.wait(_IDLE_S):
                    producer.handle_events()
            if self._stopped.is_set():
                return []
            pending, self._pending = self._pending, []
            self._pending_bytes = 0
            self._is_writing = bool(pending)
            self._deadline = Deadline.after(self._timeout_s)
            self._changed.notify_all()
            return pending
