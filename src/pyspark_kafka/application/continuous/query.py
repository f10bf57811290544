"""A running continuous query, with the members of Spark's ``StreamingQuery``."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, final

from ...domain.text import html_table
from ...ports.clock import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.continuous.progress import EpochProgress, QueryIdentity
    from .execution import ContinuousExecution
    from .progress import ProgressRecorder

_POLL_S = 0.1


@final
class ContinuousQuery:
    """Runs a query in a thread of the driver. Every method may be called from any thread."""

    def __init__(
        self,
        identity: QueryIdentity,
        execution: ContinuousExecution,
        progress: ProgressRecorder,
        close: Callable[[], None],
    ) -> None:
        """Start the query; ``close`` releases what it uses when it has ended."""
        self._identity = identity
        self._execution = execution
        self._progress = progress
        self._close = close
        self._error: Exception | None = None
        self._ended = threading.Event()
        name = f"continuous query {identity.name or identity.query_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def id(self) -> str:
        """The query's id, which restarts from its checkpoint keep."""
        return self._identity.query_id

    @property
    def runId(self) -> str:  # noqa: N802  # Spark's name
        """The id of this run."""
        return self._identity.run_id

    @property
    def name(self) -> str | None:
        """The query's name, if it has one."""
        return self._identity.name

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's name
        """Whether the query has not ended."""
        return not self._ended.is_set()

    @property
    def status(self) -> dict[str, Any]:
        """The query's state, as Spark's ``status``; ``isTriggerActive`` once all tasks run."""
        last = self.lastProgress
        is_active = self.isActive
        is_processing = is_active and self._progress.is_processing
        waiting = "Waiting for tasks to start" if is_active else "Stopped"
        return {
            "message": "Processing records" if is_processing else waiting,
            "isDataAvailable": bool(is_active and last and last["numInputRows"]),
            "isTriggerActive": is_processing,
        }

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802  # Spark's name
        """The newest progress report: ``EpochProgress.to_dict``."""
        recent = self._progress.recent
        return recent[-1].to_dict() if recent else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802  # Spark's name
        """The newest progress reports, the last one last."""
        return [progress.to_dict() for progress in self._progress.recent]

    def exception(self) -> Exception | None:
        """Return the error that ended the query, if one did."""
        return self._error

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802  # Spark's name
        """Wait until the query has ended, or for a number of seconds; return whether it has.

        :raises PysparkKafkaError: if the query ended with an error.
        :raises RuntimeError: in a listener of the query.
        """
        self._refuse_to_wait_for_itself()
        has_ended = self._wait_for(self._ended, timeout)
        if self._error is not None:
            raise self._error
        return has_ended

    def processAllAvailable(self) -> None:  # noqa: N802  # Spark's name
        """Wait until all records that exist now are processed and their epoch is committed.

        :raises PysparkKafkaError: if the query ends with an error before.
        :raises RuntimeError: in a listener of the query.
        """
        self._refuse_to_wait_for_itself()
        done = self._execution.catch_up()
        while not done.wait(_POLL_S) and self.isActive:
            pass
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop the query: tasks finish what they have read, and are cancelled if that takes long.

        When it returns, nothing more is written, and what was committed is logged. In a listener of
        the query this returns at once, and the query stops afterwards.

        :raises UncertainEndError: if tasks may still write.
        :raises PysparkKafkaError: if the last epoch could not be logged.
        """
        was_active = self.isActive
        self._execution.stop()
        if threading.current_thread() is self._thread:
            return
        self._ended.wait()
        if was_active and self._error is not None:
            raise self._error

    def _repr_html_(self) -> str:
        """Return a table of the query's state and progress, which notebooks show."""
        rows: list[tuple[str, str | int]] = [("state", self._state()), ("id", self.id)]
        for progress in self._progress.recent[-1:]:
            rows += _progress_rows(progress)
        return html_table(f"Continuous query {self.name or self.id}", rows)

    def _state(self) -> str:
        """Return what the query does, or why it ended; texts of errors may quote records."""
        if self._error is None:
            return str(self.status["message"])
        return f"Failed: {getattr(self._error, 'condition', type(self._error).__name__)}"

    def _refuse_to_wait_for_itself(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a listener runs in the thread of its query, and cannot wait for the query there"
            )

    def _wait_for(self, event: threading.Event, timeout: float | None) -> bool:
        deadline = Deadline.after(timeout)
        # Short waits, so that Ctrl-C is noticed.
        return deadline.poll(event.is_set, _POLL_S)

    def _run(self) -> None:
        with ExitStack() as ending:
            ending.callback(self._ended.set)
            ending.callback(self._attempt, self._progress.ended)
            ending.callback(self._attempt, self._close)
            self._attempt(self._execution.run)

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001  # kept for the user's thread
            self._error = self._error or error


def _progress_rows(progress: EpochProgress) -> list[tuple[str, str | int]]:
    latency = progress.work.latency
    return [
        ("epoch", str(progress.epoch)),
        ("lag", "unknown" if progress.lag is None else progress.lag.total),
        ("rows read per second", round(progress.input_rows_per_second)),
        ("rows written per second", round(progress.output_rows_per_second)),
        *(
            (f"latency, {percent} %", f"{milliseconds:,} ms")
            for percent in (50, 99)
            if (milliseconds := latency.percentile(percent)) is not None
        ),
        ("tasks", progress.tasks),
        ("restarts", progress.restarts),
        ("bad records", progress.bad_records.total),
    ]
