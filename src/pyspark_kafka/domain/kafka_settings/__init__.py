"""The settings of Kafka's Java clients: the ``kafka.*`` options.

Users of the JVM connector bring these options along. They are read as Java reads them, and the
adapters translate the result for their clients. ``table`` has every setting: what it means here,
or why it has no effect or is refused.

No message and no ``repr`` contains a secret: only values that are numbers or choices are shown.
"""

from .java import JavaSettings, not_known, read_java_settings
from .options import api_timeout_ms, connection_problems, consumer_problems, kafka_settings
from .producer import (
    MAX_IN_FLIGHT,
    ProducerSettings,
    idempotence_conflicts,
    producer_settings,
    without_producer_settings,
)
from .setting import PREFIX, Ignored, Number, ProducerField, Refused, Setting, Text
from .stores import StoreFormat, pem, store_format
from .table import (
    ALL_REPLICAS,
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    COMPRESSIONS,
    DEFAULT_API_TIMEOUT_MS,
    GROUP_ID,
    ISOLATION_LEVEL,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ROUND_ROBIN,
    SETTINGS,
)
from .values import TLS_1_2, TLS_1_3, Login, Secret, Store, Tls

__all__ = [
    "ALL_REPLICAS",
    "API_TIMEOUT_MS",
    "BOOTSTRAP_SERVERS",
    "COMPRESSIONS",
    "DEFAULT_API_TIMEOUT_MS",
    "GROUP_ID",
    "ISOLATION_LEVEL",
    "MAX_IN_FLIGHT",
    "PREFIX",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "ROUND_ROBIN",
    "SETTINGS",
    "TLS_1_2",
    "TLS_1_3",
    "Ignored",
    "JavaSettings",
    "Login",
    "Number",
    "ProducerField",
    "ProducerSettings",
    "Refused",
    "Secret",
    "Setting",
    "Store",
    "StoreFormat",
    "Text",
    "Tls",
    "api_timeout_ms",
    "connection_problems",
    "consumer_problems",
    "idempotence_conflicts",
    "kafka_settings",
    "not_known",
    "pem",
    "producer_settings",
    "read_java_settings",
    "store_format",
    "without_producer_settings",
]
