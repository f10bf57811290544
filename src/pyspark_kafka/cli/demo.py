"""``pyspark-kafka demo``: stream a topic through Spark, and show the result."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from ..brokers import require_java
from .console import Console
from .continuous_orders import stream_orders_continuously
from .demo_arguments import DemoSettings
from .order_stream import stream_orders
from .process import logs_redirected_to
from .spark_errors import readable_spark_errors
from .spark_session import require_pyspark, spark_session
from .topic_summary import summarize_topic
from .topics import TopicSource, embedded_topic, existing_topic, temporary_topic


def run_demo(settings: DemoSettings) -> int:
    """Run the demo, and return the exit status.

    :raises PysparkKafkaError: if a dependency is missing, or the demo fails.
    """
    console = Console(sys.stdout)
    require_java()
    with ExitStack() as stack:
        # The JVM deletes its own files in it when it ends, perhaps at the same time.
        temporary = TemporaryDirectory(prefix="pyspark-kafka-", ignore_cleanup_errors=True)
        directory = Path(stack.enter_context(temporary))
        log = settings.spark_log or directory / "log"
        stack.enter_context(logs_redirected_to(logging.FileHandler(log, delay=True)))
        stack.callback(console.clear)
        version = require_pyspark()
        source = stack.enter_context(_source(settings))
        _introduce(settings, source, console)
        console.live(f"Starting Spark {version} ...")
        stack.enter_context(readable_spark_errors())
        spark = stack.enter_context(spark_session(directory, log))
        checkpoint = directory / "checkpoint"
        if settings.topic is not None:
            summarize_topic(spark, source, checkpoint, console)
        else:
            stream = stream_orders_continuously if settings.is_continuous else stream_orders
            stream(spark, source, settings.events, checkpoint, console)
        _what_next(settings, console)
        console.live("Stopping Spark ...")
    return 0


def _source(settings: DemoSettings) -> AbstractContextManager[TopicSource]:
    if settings.bootstrap_servers is None:
        return embedded_topic(settings.client)
    if settings.topic is None:
        return temporary_topic(settings.bootstrap_servers, settings.client)
    connection = {"kafka.bootstrap.servers": settings.bootstrap_servers}
    return nullcontext(existing_topic(connection, settings.topic, settings.client))


def _introduce(settings: DemoSettings, source: TopicSource, console: Console) -> None:
    kind = "embedded broker" if settings.bootstrap_servers is None else "Kafka"
    console.line(f"{kind} at {source.options['kafka.bootstrap.servers']}")
    console.line(f"topic '{source.topic}', {source.partitions} partitions")
    console.line(f"client '{settings.client}', no jars")
    console.line()


def _what_next(settings: DemoSettings, console: Console) -> None:
    other = "kafka-python" if settings.client == "confluent" else "confluent"
    console.line()
    console.line(f"Try next: --client {other}")
    if not settings.is_continuous:
        console.line("          --continuous   (results in milliseconds)")
    if settings.topic is None:
        console.line("          --bootstrap-servers host:9092 --topic mine   (only reads)")
    console.line("Your own query: see the README.")
