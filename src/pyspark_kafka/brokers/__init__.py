"""Kafka brokers for trials and tests, and the jars that these need.

``EmbeddedBroker`` is librdkafka's mock cluster: it lives in this process and starts in
milliseconds. ``KafkaCluster`` is Apache Kafka itself: it needs Java, and a network the first time.
Neither is for production, both listen on the loopback interface only.
"""

from __future__ import annotations

from .embedded import EmbeddedBroker
from .jars import connector_jars
from .java import require_java
from .kafka import KafkaCluster

__all__ = ["EmbeddedBroker", "KafkaCluster", "connector_jars", "require_java"]
