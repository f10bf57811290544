"""``pyspark-kafka prometheus``: serve the lag of streaming queries to Prometheus."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, final

from ..bootstrap.tools import checkpoint_exporter_at, checkpoint_watch_for
from ..domain.json_text import utc_text
from ..ports.clock import Deadline
from .process import logs_redirected_to, until_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..application.lag.monitor import CheckpointReport, CheckpointWatch
    from .prometheus_arguments import PrometheusSettings


def run_prometheus(settings: PrometheusSettings) -> int:
    """Serve the lag until the process is interrupted, and return the exit status.

    :raises PysparkKafkaError: if an option is invalid, or a package is missing.
    :raises OSError: if the address cannot be used.
    """
    watching = checkpoint_watch_for(
        settings.connection.lag_options(),
        settings.checkpoints,
        settings.max_counted,
        settings.timeout,
    )
    with (
        logs_redirected_to(logging.NullHandler()),
        until_interrupted(),
        checkpoint_exporter_at(settings.host, settings.port) as (exporter, url),
        watching as watch,
    ):
        journal = _Journal(as_json=settings.as_json)
        journal.begin(url, settings.checkpoints)
        _measure_forever(watch, settings.interval, (exporter.put, journal.note))
    return 0


def _measure_forever(
    watch: CheckpointWatch, interval: float, takers: Iterable[Callable[[CheckpointReport], None]]
) -> None:
    while True:
        next_round = Deadline.after(interval)
        for report in watch.measure():
            for take in takers:
                take(report)
        time.sleep(next_round.remaining)


@final
class _Journal:
    """Prints a line when a checkpoint fails, when it fails in another way, and when it is well."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._conditions: dict[str, str | None] = {}

    def begin(self, url: str, names: Iterable[str]) -> None:
        """Print the address, on stdout."""
        line = f"Serving the lag of {', '.join(names)} at {url}"
        print(json.dumps({"url": url}) if self._as_json else line, flush=True)

    def note(self, report: CheckpointReport) -> None:
        """Print a line on stderr, unless the last report of the checkpoint was alike."""
        condition = report.failure.condition if report.failure else None
        if condition == self._conditions.get(report.name):
            return
        self._conditions[report.name] = condition
        text = report.failure.text if report.failure else "The lag is measured again"
        now = utc_text(datetime.now(UTC), "seconds")
        line = f"{now} {report.name}: {text}"
        if self._as_json:
            found = {"time": now, "query": report.name, "condition": condition, "text": text}
            line = json.dumps(found)
        print(line, file=sys.stderr, flush=True)
