"""Tasks of a continuous query in threads of this process."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, final

from ...domain.text import describe_error
from ...ports.clock import Deadline
from ...ports.continuous import TaskRunner

if TYPE_CHECKING:
    from collections.abc import Callable


@final
class ThreadTaskRunner(TaskRunner):
    """Runs each task in a daemon thread: without Spark, and without pickling ``run``.

    Python cannot end a thread. Tasks have to return by themselves, as they do when the driver
    closes its channel, before or during ``cancel``; until then the job is running.
    """

    def __init__(self) -> None:
        self._threads: tuple[threading.Thread, ...] = ()
        self._failures: list[str] = []
        self._is_cancelled = False

    def start(self, tasks: int, run: Callable[[int, str], None]) -> None:
        if self.is_running():
            raise RuntimeError("The last job is still running.")
        self._failures = []
        self._is_cancelled = False
        self._threads = tuple(
            threading.Thread(
                target=self._run, args=(run, slot), name=f"pyspark_kafka task {slot}", daemon=True
            )
            for slot in range(tasks)
        )
        for thread in self._threads:
            thread.start()

    def is_running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def failure(self) -> str | None:
        return next(iter(self._failures), None)

    def cancel(self, timeout_s: float) -> None:
        self._is_cancelled = self.is_running()
        deadline = Deadline.after(timeout_s)
        for thread in self._threads:
            thread.join(deadline.remaining)

    def _run(self, run: Callable[[int, str], None], slot: int) -> None:
        try:
            run(slot, uuid.uuid4().hex)
        except BaseException as error:  # noqa: BLE001 - a thread has no caller to raise it to
            if not self._is_cancelled:
                self._failures.append(describe_error(error))
