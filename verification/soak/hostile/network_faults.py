"""Faults of the network between clients and brokers."""

from collections.abc import Iterator
from typing import Final

from tests.servers.fault_proxy import Rules, Traffic

from .arena import Arena
from .fault import Faults

NETWORK_FAULTS: Final = Faults()

_HELD: Final = Traffic(is_held=True)
_LATE: Final = Traffic(delay_s=0.5)
_SLOW: Final = Traffic(bytes_per_s=1_000)
_MAX_FRAME_BYTES: Final = 2_000
"""Most of a small fetch response: a reset is likely to come in the middle of one."""


def _ruled(name: str, rules: Rules) -> None:
    """Add a fault: rules are in force for one broker, or for all."""

    @NETWORK_FAULTS.add(name)
    def strike(arena: Arena) -> Iterator[None]:
        brokers = _some_brokers(arena)
        arena.note(f"{name}: brokers {brokers}")
        with arena.ruled(brokers, rules):
            yield
        arena.note(f"{name}: over")


def _some_brokers(arena: Arena) -> list[int]:
    everyone = list(range(arena.brokers))
    return arena.chance.choice([everyone, [arena.chance.choice(everyone)]])


_ruled("black hole", Rules(_HELD, _HELD))
_ruled("requests held", Rules(to_server=_HELD))
_ruled("answers held", Rules(to_client=_HELD))
_ruled("500 ms late", Rules(_LATE, _LATE))
_ruled("1 kB a second", Rules(_SLOW, _SLOW))


@NETWORK_FAULTS.add("reset in a frame")
def reset_in_frame(arena: Arena) -> Iterator[None]:
    """Connections are reset in the middle of an answer, again and again."""
    brokers, after = _some_brokers(arena), arena.chance.randrange(1, _MAX_FRAME_BYTES)
    arena.note(f"reset after {after} bytes: brokers {brokers}")
    with arena.ruled(brokers, Rules(to_client=Traffic(reset_after=after))):
        yield
    arena.note("reset: over")


_ruled("refused", Rules(refuses=True))
