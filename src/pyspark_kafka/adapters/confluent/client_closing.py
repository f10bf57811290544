"""Closing librdkafka's clients, with a deadline.

librdkafka waits for its threads without a limit, which sometimes never end
(confluentinc/librdkafka#3954, confluentinc/librdkafka#4519).
"""

from __future__ import annotations

import _thread
import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

log = logging.getLogger(__name__)

MAX_CLOSE_S: Final = 30.0
"""How long closing may take; it usually takes milliseconds."""


def close_in_time(
    close: Callable[[], object], *, max_s: float = math.inf, is_collected: bool = False
) -> None:
    """Close a client and wait until it is closed, for ``MAX_CLOSE_S`` or ``max_s`` at most.

    A client that is not closed in time is closed in the background. ``close`` must keep
    everything that librdkafka's threads may use until then. Exceptions of ``close`` are raised
    here.

    ``is_collected`` is for a client that a garbage collection may close. Its ``close`` must not
    log: the lines would leave an object of ``threading`` behind.
    """
    has_ended = _start(close, is_collected=is_collected).ends_in_time(max_s)
    if not has_ended and max_s >= MAX_CLOSE_S:
        log.warning(
            "A client of librdkafka is not closed after %.0f s; its threads and connections "
            "remain until it is, or until the process ends",
            MAX_CLOSE_S,
        )


def end_in_time(end: Callable[[], object], abandon: Callable[[], Callable[[], object]]) -> None:
    """End a part of a client, as ``close_in_time`` closes one that may be collected.

    If it does not end in time, ``abandon`` is called. The function that it returns closes the
    client, in the background, once the part has ended: no caller waits for the same threads again.
    """
    ending = _start(end, is_collected=True)
    if not ending.ends_in_time():
        close = abandon()
        log.warning(
            "A client of librdkafka did not end a fetch within %.0f s and is given up; its threads "
            "and connections remain until it is closed, or until the process ends",
            MAX_CLOSE_S,
        )
        _start(lambda: ending.ended.acquire() and close(), is_collected=True)


def _start(close: Callable[[], object], *, is_collected: bool) -> _Closing:
    closing = _Closing(close)
    try:
        if is_collected:
            # This thread may hold a lock of `threading`, for which a new `Thread` would wait.
            _thread.start_new_thread(closing.run, ())
        else:
            threading.Thread(target=closing.run, name="client-closing", daemon=True).start()
    except RuntimeError:  # the interpreter shuts down, or there are too many threads
        closing.run()
    return closing


@final
@dataclass(slots=True)
class _Closing:
    """Closes a client in a thread; ``ended`` is locked until then."""

    close: Callable[[], object]
    error: BaseException | None = None
    ended: _thread.LockType = field(default_factory=_thread.allocate_lock)

    def __post_init__(self) -> None:
        self.ended.acquire()

    def ends_in_time(self, max_s: float = math.inf) -> bool:
        """Return whether it ends within ``MAX_CLOSE_S`` or ``max_s``; raise its exception."""
        has_ended = self.ended.acquire(timeout=min(max_s, MAX_CLOSE_S))
        if has_ended and self.error is not None:
            raise self.error
        return has_ended

    def run(self) -> None:
        try:
            self.close()
        except BaseException as error:  # noqa: BLE001  # raised by the thread that waits
            self.error = error
        finally:
            self.ended.release()
