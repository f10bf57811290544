"""Faults of the network between clients and brokers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from ...servers.fault_proxy import Rules, Traffic
from .arena import Arena
from .fault import Fault

_HELD: Final = Traffic(is_held=True)
_LATE: Final = Traffic(delay_s=0.5)
_SLOW: Final = Traffic(bytes_per_s=1_000)
_MAX_FRAME_BYTES: Final = 2_000
"""Most of a small fetch response: a reset is likely to come in the middle of one."""


def ruled(rules: Rules, what: str) -> Callable[[Arena], AbstractContextManager[None]]:
    """Return a fault: rules are in force for one broker, or for all."""

    @contextmanager
    def strike(arena: Arena) -> Iterator[None]:
        brokers = _some_brokers(arena)
        arena.note(f"{what}: brokers {brokers}")
        proxies = [proxy for broker in brokers for proxy in arena.proxies_of(broker)]
        with arena.ruled(proxies, rules):
            yield
        arena.note(f"{what}: over")

    return strike


@contextmanager
def reset_in_frame(arena: Arena) -> Iterator[None]:
    """Connections are reset in the middle of an answer, again and again."""
    brokers, after = _some_brokers(arena), arena.chance.randrange(1, _MAX_FRAME_BYTES)
    arena.note(f"reset after {after} bytes: brokers {brokers}")
    proxies = [proxy for broker in brokers for proxy in arena.proxies_of(broker)]
    with arena.ruled(proxies, Rules(to_client=Traffic(reset_after=after))):
        yield
    arena.note("reset: over")


def _some_brokers(arena: Arena) -> list[int]:
    """Return one broker, or all."""
    everyone = list(range(arena.brokers))
    return arena.chance.choice([everyone, [arena.chance.choice(everyone)]])


NETWORK_FAULTS: Final = (
    Fault("black hole", ruled(Rules(_HELD, _HELD), "black hole")),
    Fault("requests held", ruled(Rules(to_server=_HELD), "requests held")),
    Fault("answers held", ruled(Rules(to_client=_HELD), "answers held")),
    Fault("500 ms late", ruled(Rules(_LATE, _LATE), "500 ms late")),
    Fault("1 kB a second", ruled(Rules(_SLOW, _SLOW), "1 kB a second")),
    Fault("reset in a frame", reset_in_frame),
    Fault("refused", ruled(Rules(refuses=True), "refused")),
)
