"""Logins that a process does not try again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.bootstrap.pool import ContainerPool, RefusedLogins
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.security.errors import REFUSED_LOGIN_S, AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGIN = {"bootstrap.servers": "memory", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "secret"}


def source(**changed: str) -> SourceOptions:
    settings = LOGIN | {name.replace("_", "."): value for name, value in changed.items()}
    given = {f"kafka.{name}": value for name, value in settings.items()}
    return parse_source_options({**given, "subscribe": "t", "client": "memory"}, QueryKind.BATCH)


def sink() -> SinkOptions:
    given = {f"kafka.{name}": value for name, value in LOGIN.items()}
    return parse_sink_options({**given, "client": "memory"}, QueryKind.BATCH)


@pytest.fixture
def clock() -> MemoryClock:
    return MemoryClock()


@pytest.fixture
def pool(clock: MemoryClock) -> ContainerPool:
    """Return a pool in which the login of ``source()`` was refused."""
    pool = ContainerPool(clock=clock)
    refused = AuthenticationError("memory", "PLAIN", "ada", "wrong password")
    with pytest.raises(AuthenticationError) as raised, pool.lease(source()):
        raise refused
    assert raised.value is refused
    return pool


@pytest.mark.parametrize("options", [source(), source(fetch_min_bytes="2"), sink()])
def test_a_refused_login_is_not_tried_again(
    pool: ContainerPool, options: SourceOptions | SinkOptions
) -> None:
    """The next task with the same login fails before it gets a client, with the same error."""
    with pytest.raises(AuthenticationError, match=r"'ada' by PLAIN .*: wrong password"):
        pool.lease(options).__enter__()


def test_another_login_is_tried(pool: ContainerPool) -> None:
    """A corrected password, another cluster and other errors have nothing to do with it."""
    for changed in ({"sasl_jaas_config": "corrected"}, {"bootstrap_servers": "other"}):
        for _ in range(2):
            with suppress(ZeroDivisionError), pool.lease(source(**changed)):
                _ = 1 / 0
    pool.close()


def test_a_refusal_does_not_disturb_a_thread_that_reads_others(clock: MemoryClock) -> None:
    """Two threads may note what was refused at once, and each looks at all refusals."""
    logins = RefusedLogins(clock)
    reading: list[Iterator[object]] = []

    class PausingError(AuthenticationError):
        def __copy__(self) -> PausingError:
            reading.append(iter(logins._refusals))
            return self

    for password in ("first", "second"):
        refused = PausingError("memory", "PLAIN", "ada", password)
        with suppress(PausingError), logins.remember(source(sasl_jaas_config=password)):
            raise refused
    assert [len(list(each)) for each in reading] == [0, 1]


def test_a_refused_login_is_tried_after_a_time(pool: ContainerPool, clock: MemoryClock) -> None:
    """The password may have been corrected on the brokers."""
    clock.sleep_ms(round(REFUSED_LOGIN_S * 1_000) - 1)
    with pytest.raises(AuthenticationError):
        pool.lease(source()).__enter__()
    clock.sleep_ms(1)
    with pool.lease(source()):
        pass
    pool.close()
