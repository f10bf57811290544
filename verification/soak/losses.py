"""The losses of data that queries have reported, by offset."""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s [%(threadName)s] %(message)s"
"""The format of a log from which reports can be read: a query's thread has its name."""

_REPORT: Final = re.compile(
    r"\[(?:continuous query )?(?P<query>[^][\n]+)\] "
    r"(?:Skip missing records in \[(?P<start>\d+), (?P<end>\d+)\) of \S+-(?P<partition>\d+)\."
    r"|Added partition \S+-(?P<added>\d+) starts from (?P<first>\d+) instead of 0\.)"
)


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets from ``start`` to before ``end``, which a query reported as lost."""

    query: str
    partition: int
    start: int
    end: int


def losses_in(log: str) -> Iterator[Loss]:
    """Yield the losses in a log that has ``LOG_FORMAT``."""
    for found in _REPORT.finditer(log):
        query, start, end, partition, added, first = found.groups()
        if added is None:
            yield Loss(query, int(partition), int(start), int(end))
        else:
            yield Loss(query, int(added), 0, int(first))


class LossLog(logging.Handler):
    """Takes the reports of queries in threads of this process, while it is open."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter(LOG_FORMAT))
        self._lines: list[str] = []
        logging.getLogger("pyspark_kafka").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def losses(self) -> list[Loss]:
        return list(losses_in("\n".join(self._lines)))

    def close(self) -> None:
        logging.getLogger("pyspark_kafka").removeHandler(self)
        super().close()
