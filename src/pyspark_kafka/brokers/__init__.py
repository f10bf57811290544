"""Kafka brokers for tests and demos, and their jars.

``EmbeddedBroker`` is librdkafka's mock cluster: it runs in this process and starts in
milliseconds. ``KafkaCluster`` is Apache Kafka itself: it needs Java, and a network the first time.
Both listen on the loopback interface only and are not for production.
"""

from __future__ import annotations

from .admin import temporary_topics
from .embedded import EmbeddedBroker
from .jars import avro_jars, connector_jars
from .java import require_java
from .kafka import KafkaCluster

__all__ = [
    "EmbeddedBroker",
    "KafkaCluster",
    "avro_jars",
    "connector_jars",
    "require_java",
    "temporary_topics",
]
