"""Generated orders of a web shop, the same in every run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, final

COUNTRIES: Final = {"DE": 24, "FR": 18, "ES": 14, "IT": 13, "NL": 11, "PL": 9, "SE": 6, "PT": 5}
"""Countries, and the percentage of orders from each."""

CATEGORIES: Final = {
    "books": (6_00, 40_00),
    "games": (15_00, 80_00),
    "garden": (9_00, 250_00),
    "kitchen": (12_00, 300_00),
    "phones": (99_00, 1_200_00),
    "shoes": (30_00, 180_00),
}
"""Categories, and their lowest and highest prices in cents."""

CHANNELS: Final = {"app": 55, "web": 45}
CUSTOMERS: Final = 9_000
OPENING: Final = datetime(2026, 1, 5, 8, tzinfo=UTC)
SEED: Final = 20_260_105


@final
@dataclass(frozen=True, slots=True)
class OrderEvent:
    """An order as a Kafka record, and its amount to check the result against."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]
    cents: int


def orders(count: int) -> Iterator[OrderEvent]:
    """Yield ``count`` orders, one every 20 ms from the opening of the shop."""
    dice = random.Random(SEED)  # noqa: S311 - not for secrets
    for number in range(count):
        yield _order(number, dice)


def _order(number: int, dice: random.Random) -> OrderEvent:
    category = dice.choice(tuple(CATEGORIES))
    cents = dice.randint(*CATEGORIES[category])
    ordered_at = OPENING + timedelta(milliseconds=20 * number)
    body = {
        "order_id": f"o-{number:07d}",
        "country": _weighted(COUNTRIES, dice),
        "category": category,
        "amount": f"{cents // 100}.{cents % 100:02d}",
        "ordered_at": ordered_at.isoformat(timespec="milliseconds"),
    }
    return OrderEvent(
        key=f"customer-{dice.randrange(CUSTOMERS):04d}".encode(),
        value=json.dumps(body, separators=(",", ":")).encode(),
        headers=[("channel", _weighted(CHANNELS, dice).encode())],
        cents=cents,
    )


def _weighted(weights: dict[str, int], dice: random.Random) -> str:
    return dice.choices(tuple(weights), tuple(weights.values()))[0]
