"""``pyspark-kafka broker``: run a Kafka broker to try things out."""

from __future__ import annotations

import logging
import sys
import threading

from ..brokers import EmbeddedBroker, KafkaCluster, require_java
from .broker_arguments import BrokerSettings
from .console import Console
from .process import logs_redirected_to, until_interrupted


def run_broker(settings: BrokerSettings) -> int:
    """Run brokers until Ctrl-C or SIGTERM, and return the exit status.

    :raises PysparkKafkaError: if a dependency is missing, or the brokers do not start.
    """
    console = Console(sys.stdout)
    with (
        logs_redirected_to(logging.NullHandler()),
        until_interrupted(),
        _brokers(settings, console) as brokers,
    ):
        for name, partitions in settings.topics:
            brokers.create_topic(name, partitions)
        console.clear()
        _introduce(settings, brokers.options, console)
        threading.Event().wait()
    console.clear()
    console.line("The broker has stopped.")
    return 0


def _brokers(settings: BrokerSettings, console: Console) -> EmbeddedBroker | KafkaCluster:
    if not settings.kafka:
        return EmbeddedBroker(settings.brokers)
    require_java()
    console.live("Starting Apache Kafka ...")
    return KafkaCluster(settings.brokers, port=settings.port)


def _introduce(settings: BrokerSettings, options: dict[str, str], console: Console) -> None:
    kind = "Apache Kafka" if settings.kafka else "A mock broker"
    console.line(f"{kind} is running until Ctrl-C. The options of a query:")
    console.line()
    for name, value in options.items():
        console.line(f"  {name}={value}")
    console.line()
    for name, partitions in settings.topics:
        console.line(f"topic '{name}', {partitions} partition{'s' if partitions > 1 else ''}")
    console.line("To read from it:")
    console.line()
    topic = settings.topics[0][0] if settings.topics else "mine"
    console.line('  (spark.readStream.format("pyspark_kafka")')
    for name, value in {**options, "subscribe": topic}.items():
        console.line(f'    .option("{name}", "{value}")')
    console.line("    .load())")
    console.line()
