"""Closing librdkafka's clients, with a deadline.

librdkafka waits for its threads without a limit, which sometimes never end
(confluentinc/librdkafka#3954, confluentinc/librdkafka#4519).
"""

from __future__ import annotations

# A garbage collection may close a client while this thread holds a lock of ``threading``, for
# which ``threading.Thread`` would wait.
import _thread
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

MAX_CLOSE_S: Final = 30.0
"""How long closing may take; it usually takes milliseconds."""


def close_in_time(close: Callable[[], object]) -> None:
    """Close a client and wait until it is closed, for ``MAX_CLOSE_S`` at most.

    A client that is not closed in time is closed in the background. ``close`` must keep
    everything that librdkafka's threads may use until then. Its exceptions are raised here.
    """
    closing = _Closing(close)
    try:
        _thread.start_new_thread(closing.run, ())
    except RuntimeError:  # the interpreter shuts down, or there are too many threads
        closing.run()
    if not closing.ended.acquire(timeout=MAX_CLOSE_S):
        log.warning(
            "A client of librdkafka is not closed after %.0f s; its threads and connections "
            "remain until it is, or until the process ends",
            MAX_CLOSE_S,
        )
    elif closing.error is not None:
        raise closing.error


@final
@dataclass(slots=True)
class _Closing:
    """Closes a client in a thread; ``ended`` is locked until then."""

    close: Callable[[], object]
    error: BaseException | None = None
    ended: _thread.LockType = field(default_factory=_thread.allocate_lock)

    def __post_init__(self) -> None:
        self.ended.acquire()

    def run(self) -> None:
        try:
            self.close()
        except BaseException as error:  # noqa: BLE001  # raised by the thread that waits
            self.error = error
        finally:
            self.ended.release()
