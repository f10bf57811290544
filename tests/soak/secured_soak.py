"""Queries that log in for minutes, while sessions, tokens and tickets end under them."""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final, final

from ..servers.kdc import KRB5_CONFIG
from ..servers.secured import MECHANISMS, SecuredBroker
from .base import Opened
from .driver import Driver, QueryPlan
from .ledger import SOURCE, Ledger
from .numbers import SoakError

LIFETIME_S: Final = 60
"""How long tokens and tickets are valid; a session ends after ``SESSION_MS`` of the broker."""

SECURED_QUERIES: Final = tuple(
    QueryPlan("kafka-python", "exactly-once", mechanism) for mechanism in MECHANISMS
)

_ENDPOINT: Final = "kafka.sasl.oauthbearer.token.endpoint.url"
_ALLOWED_URLS: Final = "PYSPARK_KAFKA_ALLOWED_URLS"
_PARTITIONS: Final = 2
_RATE: Final = 50
_TRIGGER: Final = "3 seconds"
_START_S: Final = 300.0
_CHECK_S: Final = 180.0
_REPORT_S: Final = 30.0


@final
class SecuredSoak(Opened):
    """A driver of one query for each mechanism, which nothing kills: it must not end by itself."""

    def __init__(
        self, broker: SecuredBroker, queries: Sequence[QueryPlan], say: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._broker = broker
        self._queries = queries
        self._say = say

    def _open(self, closing: ExitStack) -> None:
        directory = Path(tempfile.mkdtemp(prefix="secured-soak-"))
        closing.callback(shutil.rmtree, directory, ignore_errors=True)
        ledger = Ledger(self._broker.cluster, self._queries, _PARTITIONS, _RATE)
        self._ledger = closing.enter_context(ledger)
        krb5_conf = directory / "krb5.conf"
        self._broker.kdc.write_krb5_conf(krb5_conf, lifetime_s=LIFETIME_S)
        self._driver = Driver(
            directory,
            self._queries,
            SOURCE,
            self._options,
            {KRB5_CONFIG: str(krb5_conf), _ALLOWED_URLS: self._token_url},
            trigger=_TRIGGER,
        )
        closing.callback(self._driver.kill)

    def run(self, minutes: float) -> None:
        """Run the queries under load, and look for each number.

        :raises SoakError: if one is lost, doubled, or does not come, or the driver ends.
        """
        self._driver.start()
        began = time.monotonic()
        while not self._driver.is_running():
            self._keep(began + _START_S)
        self._report("running", began)
        began = time.monotonic()
        with self._ledger.producer.writing():
            reported = began
            while time.monotonic() < began + 60 * minutes:
                self._keep()
                if time.monotonic() > reported + _REPORT_S:
                    reported = time.monotonic()
                    self._report("load", began)
        try:
            self._ledger.check(time.monotonic() + _CHECK_S, self._keep, _CHECK_S)
        finally:
            self._report("checked", began)

    def _options(self, query: QueryPlan) -> dict[str, str]:
        options = self._broker.options(query.login)
        if _ENDPOINT in options:
            options[_ENDPOINT] = self._token_url
        return options

    @property
    def _token_url(self) -> str:
        return f"{self._broker.token_url}/{LIFETIME_S}"

    def _keep(self, deadline: float | None = None) -> None:
        """Read, so that the driver runs on meanwhile.

        :raises SoakError: if it has ended, or the time is over.
        """
        if self._driver.has_ended():
            raise SoakError(f"the driver has ended by itself\n{self._driver.last_words()}")
        if deadline is not None and time.monotonic() > deadline:
            raise SoakError(f"no running queries in time\n{self._driver.last_words()}")
        self._ledger.read()

    def _report(self, event: str, began: float) -> None:
        line = {
            "event": event,
            "seconds": round(time.monotonic() - began, 1),
            "numbers": self._ledger.producer.count,
            "counts": {query: asdict(one) for query, one in self._ledger.counts().items()},
        }
        self._say(json.dumps(line))
