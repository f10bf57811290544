"""Queries in a process of their own, which is started again when one of them fails."""

import re
from collections.abc import Callable
from typing import Final

from ..driver_process import DriverProcess
from ..ledger import Ledger
from .queries import HostileQuery

_CONDITION: Final = re.compile(r"\[(KAFKA_[A-Z_]+)")


class DriverQueries(HostileQuery):
    """A driver of all queries of a ledger. A failure of one query is the end of all.

    Spark starts no query again, and a continuous query starts only its tasks again.
    """

    def __init__(
        self, name: str, driver: DriverProcess, start: Callable[[], None], ledger: Ledger
    ) -> None:
        """Take what starts the driver again, after its end."""
        super().__init__(name)
        self._readers = list(ledger.readers.values())
        self._producer = ledger.producer
        self._driver = driver
        self._start = start

    def mark(self) -> int:
        return self._producer.count

    def has_passed(self, mark: int) -> bool:
        return all(reader.newest_of_all() >= mark for reader in self._readers)

    def step(self) -> None:
        if not self._driver.has_ended():
            return
        if self._driver.pid:
            self._note_end()
        self._driver.kill()
        self._start()

    def _note_end(self) -> None:
        """Note why the driver has ended; by an error of this library, or it is wrong."""
        status, self.last_error = self._driver.wait(0), self._driver.last_words()
        found = _CONDITION.findall(self.last_error)
        is_failure = status == 1 and bool(found)
        self.errors[found[-1] if is_failure else f"exit status {status}"] += 1
        if not is_failure:
            self._wrong.append(f"{self.name} ended with {status}: {self.last_error}")

    def close_clients(self) -> None:
        """Leave the driver to itself."""

    def stop(self) -> None:
        super().stop()
        self._driver.kill()
