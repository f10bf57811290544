"""Which broker is asked next, and when each may be connected to again."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.cluster.backoff import Address, BackoffSettings, ReconnectBackoff
from pyspark_kafka.domain.cluster.broker_choice import BrokerChoice

SETTINGS = BackoffSettings(0.05, 1.0, 10.0, 30.0)
FIRST, SECOND, SERVER = ("a", 1), ("b", 1), ("server", 1)

addresses = st.builds(lambda number: (f"host-{number}", 9092), st.integers(0, 5))


def free(_: Address) -> float:
    return 0.0


def choice(*servers: Address, seed: int = 0) -> BrokerChoice:
    random = Random(seed)  # noqa: S311
    return BrokerChoice(servers or (SERVER,), random.random)


@given(st.sets(addresses, min_size=1), st.sets(addresses), st.integers(0, 99))
def test_each_broker_is_asked_if_the_others_do_not_answer(servers, brokers, seed):
    """No broker is asked twice before all others were asked once."""
    chosen = choice(*servers, seed=seed)
    chosen.learn(brokers)
    for _ in range(2):
        asked = []
        for _ in chosen.candidates:
            asked.append(chosen.next((), free))
            chosen.ask_last(asked[-1])
        assert sorted(asked) == sorted(servers | brokers)


@given(
    st.sets(addresses, min_size=1),
    st.sets(addresses, min_size=1),
    st.dictionaries(addresses, st.floats(0.01, 1.0)),
    st.integers(0, 99),
)
def test_known_brokers_come_before_the_bootstrap_servers(servers, brokers, waits, seed):
    """The bootstrap servers are asked again if no known broker can be connected to now."""
    chosen = choice(*servers, seed=seed)
    chosen.learn(brokers)

    def seconds_left(address: Address) -> float:
        return waits.get(address, 0.0)

    found = chosen.next((), seconds_left)
    free_brokers = {each for each in brokers if not seconds_left(each)}
    free_servers = {each for each in servers if not seconds_left(each)}
    if free_brokers:
        assert found in free_brokers
    elif free_servers:
        assert found in free_servers
    else:
        assert seconds_left(found) == min(seconds_left(each) for each in servers | brokers)


def test_a_broker_that_is_connected_comes_first_unless_it_is_doubted():
    chosen = choice()
    chosen.learn([FIRST, SECOND])
    assert {chosen.next([SECOND], free) for _ in range(20)} == {SECOND}
    chosen.ask_last(SECOND)
    assert chosen.next([SECOND], free) == FIRST


def test_a_doubt_ends_with_the_address():
    chosen = choice()
    chosen.learn([FIRST])
    chosen.ask_last(FIRST)
    chosen.learn([SECOND])
    chosen.learn([FIRST])
    assert chosen.next((), free) == FIRST


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_pauses_double_up_to_a_limit(randoms):
    """Each pause and time-out is within its bounds, whatever came before."""
    numbers = iter(randoms)
    backoff = ReconnectBackoff(SETTINGS, lambda: next(numbers))
    now = 0.0
    for count in range(len(randoms)):
        expected_s = min(0.05 * 2**count, 1.0)
        assert backoff.setup_s(FIRST) == min(10.0 * 2**count, 30.0)
        backoff.failed(FIRST, now, "why")
        assert 0.8 * expected_s <= backoff.seconds_left(FIRST, now) * 1.0001
        assert backoff.seconds_left(FIRST, now) <= 1.2 * expected_s * 1.0001
        now += 2.0
        assert backoff.seconds_left(FIRST, now) == 0


def test_a_success_ends_the_pauses_of_its_address_alone():
    backoff = ReconnectBackoff(SETTINGS, lambda: 0.5)
    reasons: Mapping[Address, str] = {FIRST: "refused", SECOND: "silent"}
    for address, reason in reasons.items():
        backoff.failed(address, 0.0, reason)
    backoff.succeeded(FIRST)
    assert (backoff.seconds_left(FIRST, 0.0), backoff.reason(FIRST)) == (0.0, "")
    assert (backoff.seconds_left(SECOND, 0.0), backoff.reason(SECOND)) == (0.05, "silent")
    assert backoff.setup_s(FIRST) == 10.0


@pytest.mark.parametrize(("setup_s", "max_s"), [(10.0, 0.001), (0.01, 0.01)])
def test_the_longest_set_up_is_no_shorter_than_the_first(setup_s, max_s):
    backoff = ReconnectBackoff(BackoffSettings(0.0, 0.0, setup_s, max_s), lambda: 0.5)
    assert backoff.setup_s(FIRST) == setup_s
    backoff.failed(FIRST, 0.0, "")
    assert backoff.setup_s(FIRST) == setup_s
    assert backoff.seconds_left(FIRST, 0.0) == 0
