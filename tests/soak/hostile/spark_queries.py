"""Micro-batch queries in a Spark of their own, which is started again when one of them fails."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ..driver import Driver, QueryPlan
from ..ledger import SOURCE, Ledger
from .queries import HostileQuery

_CONDITION: Final = re.compile(r"\[(KAFKA_[A-Z_]+)")
_UNKNOWN: Final = "another error"


class SparkQueries(HostileQuery):
    """A driver of Spark's. A failure of one query is the end of all, as Spark knows no restart."""

    def __init__(
        self,
        plans: Sequence[QueryPlan],
        options_of: Callable[[QueryPlan], dict[str, str]],
        directory: Path,
        ledger: Ledger,
    ) -> None:
        super().__init__("spark")
        self._readers = [ledger.readers[plan] for plan in plans]
        self._producer = ledger.producer
        self._driver = Driver(directory, plans, SOURCE, options_of, uses_groups=True)

    def mark(self) -> int:
        return self._producer.count

    def has_passed(self, mark: int) -> bool:
        return all(reader.newest_of_all() >= mark for reader in self._readers)

    def step(self) -> None:
        if not self._driver.has_ended():
            return
        if self._driver.pid:
            self.last_error = self._driver.last_words()
            found = _CONDITION.findall(self.last_error)
            self.errors[found[-1] if found else _UNKNOWN] += 1
        self._driver.start()

    def close_clients(self) -> None:
        """Leave the driver to itself."""

    def stop(self) -> None:
        super().stop()
        self._driver.kill()
