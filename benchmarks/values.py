"""Values of records, of exact sizes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

EVENT_BYTES: Final = 200
COMPRESSION_RATIO: Final = 5
"""The approximate compression ratio of `padded_bytes`."""

ACTIONS: Final = ("view", "search", "add_to_cart", "checkout", "refund", "sign_in")
CITIES: Final = ("Lagos", "Lima", "Osaka", "Oslo", "Porto", "Pune", "Quito", "Turin")
WORDS: Final = (
    "after apple before blue carried coffee delivered early every found garden green house "
    "kitchen late left letter light market morning never open order paper quiet returned river "
    "second sent small station street summer table third under voucher warm window winter with"
)


def random_bytes(generator: Random, size: int) -> bytes:
    """Return incompressible bytes."""
    return generator.randbytes(size)


def padded_bytes(generator: Random, size: int) -> bytes:
    """Return random bytes with a long constant tail."""
    return generator.randbytes(size // COMPRESSION_RATIO).ljust(size, b".")


def json_event(generator: Random, size: int = EVENT_BYTES) -> bytes:
    """Return an event of a shop as JSON, padded to its size by a note."""
    event = {
        "id": generator.getrandbits(40),
        "at": 1_700_000_000_000 + generator.randrange(10**9),
        "user": f"u{generator.randrange(10**6)}",
        "action": generator.choice(ACTIONS),
        "city": generator.choice(CITIES),
        "price": generator.randrange(10**4) / 100,
        "note": "",
    }
    room = size - len(json.dumps(event))
    words = " ".join(generator.choices(WORDS.split(), k=1 + room // 4))
    return json.dumps({**event, "note": words[:room].ljust(room)}).encode()


def short_json_event(generator: Random, size: int) -> bytes:
    """Return a smaller event, padded with blanks."""
    event = {
        "id": generator.getrandbits(40),
        "user": f"u{generator.randrange(10**6)}",
        "action": generator.choice(ACTIONS),
        "price": generator.randrange(10**4) / 100,
    }
    return json.dumps(event).ljust(size).encode()


def json_events(generator: Random, size: int) -> bytes:
    """Return a JSON array of events, padded with blanks."""
    count = (size - 1) // (EVENT_BYTES + 1)
    events = b",".join(json_event(generator) for _ in range(count))
    return b"[%b]".ljust(size - len(events) + 2) % events
