"""Queries that log in for minutes, while sessions, tokens and tickets end under them."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from tests.servers.kdc import KRB5_CONFIG
from tests.servers.secured import MECHANISMS, SecuredBroker
from tests.slowness import bound_s

from .driver import Driver, QueryPlan
from .ledger import SOURCE, Ledger, LedgerRounds
from .numbers import SoakError
from .rounds import Round, temporary_directory

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
_START_S: Final = bound_s(300)
_CHECK_S: Final = bound_s(180)


class SecuredSoak(LedgerRounds):
    """A driver of one query for each mechanism, which nothing kills: it must not end by itself.

    A round is some minutes of load.
    """

    def __init__(
        self,
        broker: SecuredBroker,
        queries: Sequence[QueryPlan],
        say: Callable[[str], None],
        minutes: float,
    ) -> None:
        super().__init__(0, say)
        self._broker = broker
        self._queries = queries
        self._minutes = minutes

    def _open(self, closing: ExitStack) -> None:
        directory = temporary_directory(closing, "secured-soak")
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

    def run_round(self, number: int) -> Round:
        return self._checked(number, self._run)

    def _run(self) -> None:
        self._ledger.begin_round()
        self._driver.start()
        self._ledger.await_event(self._driver.is_running, "running queries", _START_S, self._keep)
        self._note("running")
        with self._ledger.producer.writing():
            self._ledger.wait_for(lambda: False, 60 * self._minutes, self._keep)
        self._note("loaded")
        self._ledger.check(time.monotonic() + _CHECK_S, self._keep, _CHECK_S)

    def _options(self, query: QueryPlan) -> dict[str, str]:
        options = self._broker.options(query.login)
        if _ENDPOINT in options:
            options[_ENDPOINT] = self._token_url
        return options

    @property
    def _token_url(self) -> str:
        return f"{self._broker.token_url}/{LIFETIME_S}"

    def _keep(self) -> None:
        """Raise if the driver has ended."""
        if self._driver.has_ended():
            raise SoakError("the driver has ended by itself")
