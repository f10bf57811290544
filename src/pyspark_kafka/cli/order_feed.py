"""What puts orders into Kafka while Spark reads them."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Final, Self, final

from kafka import KafkaProducer

from ..adapters.kafka_python.failures import Cluster
from ..adapters.kafka_python.settings import client_config
from ..domain.options import QueryKind, parse_source_options
from .events import orders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from .events import OrderEvent

PER_SECOND: Final = 4_000
_CHUNKS_PER_SECOND: Final = 10


@final
class OrderFeed:
    """Produces orders from a thread of its own inside of its ``with`` block.

    ``sent`` and ``cents`` count what brokers have acknowledged.
    """

    def __init__(self, options: Mapping[str, str], topic: str, count: int) -> None:
        settings = parse_source_options(options, QueryKind.STREAM)
        self._cluster = Cluster(settings.bootstrap_servers, settings.poll_timeout_ms)
        self._config = {
            name: value
            for name, value in client_config(dict(settings.kafka)).items()
            if name in KafkaProducer.DEFAULT_CONFIG
        }
        self._topic = topic
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)
        self.count = count
        self.sent = 0
        self.cents = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def is_done(self) -> bool:
        """Whether every order is in Kafka.

        :raises PysparkKafkaError: if Kafka did not take one.
        """
        if self._failure is not None:
            raise self._failure
        return self.sent == self.count

    def _run(self) -> None:
        try:
            with self._cluster.mapped_errors("a request to produce"):
                self._produce()
        except Exception as error:  # noqa: BLE001 - is_done raises it in the other thread
            self._failure = error

    def _produce(self) -> None:
        producer = KafkaProducer(**self._config)
        try:
            made = orders(self.count)
            began = time.monotonic()
            for number in itertools.count(1):
                chunk = list(itertools.islice(made, PER_SECOND // _CHUNKS_PER_SECOND))
                if not chunk:
                    return
                self._send(producer, chunk)
                due = began + number / _CHUNKS_PER_SECOND
                if self._stopping.wait(max(0.0, due - time.monotonic())):
                    return
        finally:
            producer.close(timeout=self._cluster.timeout_ms / 1_000)

    def _send(self, producer: KafkaProducer, chunk: Iterable[OrderEvent]) -> None:
        sending = [
            (order, producer.send(self._topic, order.value, order.key, order.headers))
            for order in chunk
        ]
        producer.flush()
        for order, future in sending:
            future.get()
            self.sent += 1
            self.cents += order.cents
