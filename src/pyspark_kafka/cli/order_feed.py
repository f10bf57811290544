"""The producer of the demo's orders: this library's own writer, embedded without Spark."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self, final

import pyarrow as pa

from ..bootstrap.container import closing_clients, sink_container_for
from ..bootstrap.option_policy import operator_policy
from ..domain.options.option import QueryKind
from ..domain.options.sink import parse_sink_options
from ..ports.clock import Deadline
from ..ports.reading import TYPES
from ..ports.writing import RecordWriter
from .events import OrderEvent, orders

PER_SECOND: Final = 4_000

_BATCHES_PER_SECOND: Final = 10
_SCHEMA: Final = pa.schema([(name, TYPES[name]) for name in ("key", "value", "headers")])


@final
class OrderFeed:
    """Writes orders to a topic from a background thread, inside of its ``with`` block.

    ``sent`` and ``cents`` count what brokers have acknowledged.
    """

    def __init__(self, connection: Mapping[str, str], topic: str, count: int) -> None:
        given = {**connection, "topic": topic}
        self._options = parse_sink_options(given, QueryKind.BATCH, operator_policy())
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)
        self.count = count
        self.sent = 0
        self.cents = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def is_done(self) -> bool:
        """Whether every order is in Kafka.

        :raises PysparkKafkaError: if Kafka did not acknowledge one.
        """
        if self._failure is not None:
            raise self._failure
        return self.sent == self.count

    def _run(self) -> None:
        try:
            with closing_clients(sink_container_for(self._options)) as container:
                self._write(container.record_writer())
        except Exception as error:  # noqa: BLE001 - is_done raises it in the other thread
            self._failure = error

    def _write(self, writer: RecordWriter) -> None:
        remaining = orders(self.count)
        began = time.monotonic()
        for number in itertools.count(1):
            batch = list(itertools.islice(remaining, PER_SECOND // _BATCHES_PER_SECOND))
            if not batch:
                return
            writer.write(_records(batch), self._options.topic)
            self.sent += writer.flush().records
            self.cents += sum(order.cents for order in batch)
            if self._stopping.wait(Deadline(began + number / _BATCHES_PER_SECOND).remaining):
                return


def _records(batch: Sequence[OrderEvent]) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {
        "key": [order.key for order in batch],
        "value": [order.value for order in batch],
        "headers": [
            [{"key": name, "value": value} for name, value in order.headers] for order in batch
        ],
    }
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)
