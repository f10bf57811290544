"""The settings of Kafka's Java clients: the ``kafka.*`` options.

Users of the JVM connector bring these options along. They are read as Java reads them, and the
adapters translate the result for their clients. ``table`` has every setting: what it means here,
or why it has no effect or is refused.

No message and no ``repr`` contains a secret: only values that are numbers or choices are shown.
"""

from .options import api_timeout_ms, kafka_settings, server_address, server_list, server_problems
from .producer import MAX_IN_FLIGHT, ProducerSettings
from .setting import PREFIX
from .table import (
    ALL_REPLICAS,
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    COMPRESSIONS,
    GROUP_ID,
    ISOLATION_LEVEL,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ROUND_ROBIN,
)

__all__ = [
    "ALL_REPLICAS",
    "API_TIMEOUT_MS",
    "BOOTSTRAP_SERVERS",
    "COMPRESSIONS",
    "GROUP_ID",
    "ISOLATION_LEVEL",
    "MAX_IN_FLIGHT",
    "PREFIX",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "ROUND_ROBIN",
    "ProducerSettings",
    "api_timeout_ms",
    "kafka_settings",
    "server_address",
    "server_list",
    "server_problems",
]
