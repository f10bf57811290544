"""The settings of a continuous query, apart from the options of its source and sink."""

from __future__ import annotations

import re
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ..options.option import milliseconds, server_list
from ..options.sink_table import DeliveryGuarantee
from ..writing.errors import QueryReplacedError
from ..writing.group_seal import GroupSeal
from ..writing.transaction import continuous_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..options.sink import SinkOptions
    from ..options.source import SourceOptions
    from ..writing.group_seal import GroupOffset

_UNITS: Final[Mapping[str, str]] = {
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
}


def interval_ms(text: str) -> int:
    """Return the milliseconds of ``1 second``, as of Spark's triggers, or of ``1s``.

    :raises ValueError: if it is not an interval, or not above 0.
    """
    found = re.fullmatch(r"\s*(\d+)\s+([a-z]+?)s?\s*", text.lower())
    if found and found[2] in _UNITS:
        text = found[1] + _UNITS[found[2]]
    interval = milliseconds(text)
    if interval <= 0:
        raise ValueError(f"an interval must be above 0, got '{text}'")
    return interval


def option_conflicts(source: SourceOptions, sink: SinkOptions) -> list[str]:
    """Return the problems of options that do not go together."""
    problems = []
    if source.client != sink.client:
        problems.append(
            f"source and sink must use the same client, got '{source.client}' and '{sink.client}'"
        )
    servers = server_list(sink.bootstrap_servers)
    is_same = not set(servers).isdisjoint(server_list(source.bootstrap_servers))
    if sink.guarantee is DeliveryGuarantee.EXACTLY_ONCE and not is_same:
        problems.append(
            "deliveryGuarantee 'exactly-once' needs source and sink in the same Kafka cluster: "
            "the input's offsets are part of the output's transaction. Their "
            "'kafka.bootstrap.servers' have no server in common"
        )
    return problems


@final
@dataclass(frozen=True, slots=True)
class RestartLimits:
    """At most ``max_restarts`` within ``within_s`` seconds, with a growing pause before each."""

    max_restarts: int = 10
    within_s: float = 600.0
    first_delay_s: float = 0.1
    max_delay_s: float = 30.0

    def __post_init__(self) -> None:
        if self.max_restarts < 0 or self.within_s <= 0:
            raise ValueError("restarts are limited by a count and a time")


@final
class RestartStrategy:
    """Counts failures; times are monotonic, in seconds."""

    def __init__(self, limits: RestartLimits) -> None:
        self._limits = limits
        self._restarts: deque[float] = deque()

    def delay_after_failure(self, now: float) -> float | None:
        """Return the seconds to wait before the next start, or ``None`` to give up."""
        limits = self._limits
        while self._restarts and self._restarts[0] <= now - limits.within_s:
            self._restarts.popleft()
        if len(self._restarts) >= limits.max_restarts:
            return None
        self._restarts.append(now)
        doublings = min(len(self._restarts) - 1, sys.float_info.max_exp - 1)
        return min(limits.max_delay_s, limits.first_delay_s * 2.0**doublings)


@final
@dataclass(frozen=True, slots=True)
class ContinuousSettings:
    """The settings that every task of a query needs; pickled to executors.

    ``group_id`` is the group of the input's offsets and the beginning of transactional ids, used
    with exactly-once only. The run began with ``first_epoch``.
    """

    group_id: str
    run_id: str = ""
    first_epoch: int = -1

    def transactional_id(self, topic: str, partition: int) -> str:
        """Return the transactional id under which the outputs of a partition are written."""
        return continuous_id(self.group_id, topic, partition)

    def require_unsealed(self, committed: Iterable[GroupOffset]) -> None:
        """Check the group's offsets, after earlier producers of their partitions were fenced.

        :raises QueryReplacedError: if this run may no longer commit.
        """
        for each in committed:
            reason = GroupSeal.of(each).reason(self.run_id, self.first_epoch)
            if reason is not None:
                raise QueryReplacedError(reason)


@final
@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """Times in seconds, and the bounds of a query.

    ``start_timeout_s``: until all tasks must have started. ``task_timeout_s``: how long a task may
    send nothing before all tasks start again. ``stop_timeout_s``: how long tasks may take to finish
    what they have read. ``log_outage_s``: how long the log's storage may fail; meanwhile tasks
    continue, and more is repeated after a crash.
    """

    epoch_s: float = 1.0
    max_tasks: int | None = None
    start_timeout_s: float = 120.0
    task_timeout_s: float = 30.0
    stop_timeout_s: float = 30.0
    log_outage_s: float = 60.0
    restarts: RestartLimits = field(default_factory=RestartLimits)
