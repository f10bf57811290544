from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal

from pyspark_kafka.cli.events import CATEGORIES, CHANNELS, COUNTRIES, OPENING, orders


def test_orders_are_the_same_in_every_run() -> None:
    """Two runs generate the same orders, and a longer run begins with a shorter one's."""
    assert list(orders(50)) == list(orders(80))[:50]


def test_the_number_of_orders() -> None:
    """The count is exact, also for no orders."""
    assert len(list(orders(321))) == 321
    assert list(orders(0)) == []


def test_an_order_is_json_of_a_known_shop() -> None:
    """Every value is JSON whose fields are from the shop's lists."""
    for order in orders(200):
        body = json.loads(order.value)
        low, high = CATEGORIES[body["category"]]
        assert body["country"] in COUNTRIES
        assert low <= order.cents <= high
        assert Decimal(body["amount"]) * 100 == order.cents
        assert datetime.fromisoformat(body["ordered_at"]) >= OPENING


def test_order_ids_are_unique() -> None:
    """No two orders share an id."""
    assert len({json.loads(order.value)["order_id"] for order in orders(500)}) == 500


def test_an_order_has_a_key_and_a_header() -> None:
    """The key is the customer, and the header the channel."""
    for order in orders(100):
        assert order.key.startswith(b"customer-")
        [(name, channel)] = order.headers
        assert name == "channel"
        assert channel.decode() in CHANNELS


def test_orders_fit_into_the_embedded_broker() -> None:
    """The maximum number of orders fits into four partitions."""
    sizes = [len(order.key) + len(order.value) for order in orders(1_000)]
    assert max(sizes) < 200
