"""The bounds of a continuous query's run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from ...domain.continuous.restart_strategy import RestartLimits


@final
@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """Times in seconds, and the bounds of a query.

    ``start_timeout_s``: until all tasks must have started. ``task_timeout_s``: how long a task may
    send nothing before all tasks start again. ``stop_timeout_s``: how long tasks may take to finish
    what they have read. ``log_outage_s``: how long the log's storage may fail; meanwhile tasks go
    on, and more is repeated after a crash.
    """

    epoch_s: float = 1.0
    max_tasks: int | None = None
    start_timeout_s: float = 120.0
    task_timeout_s: float = 30.0
    stop_timeout_s: float = 30.0
    log_outage_s: float = 60.0
    restarts: RestartLimits = field(default_factory=RestartLimits)
