"""How large a response librdkafka accepts."""

import pytest

from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.consumer_handle import FORCED, TUNED, response_limit
from pyspark_kafka.adapters.confluent.librdkafka import CONSUMER
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, (50 + 64) * MIB),
        ({"maxRecordBytes": str(200 * MIB)}, (50 + 200) * MIB),
        ({"maxRecordBytes": "1"}, 50 * MIB + 512),
        ({"kafka.fetch.max.bytes": str(200 * MIB)}, (200 + 64) * MIB),
        ({"kafka.message.max.bytes": str(200 * MIB)}, (200 + 64) * MIB),
        ({"kafka.fetch.max.bytes": "2147483135"}, 2**31 - 1),
    ],
)
def test_a_response_may_hold_a_fetch_and_a_record(given, limit):
    servers = {"client": "confluent", "kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    options = parse_source_options(servers | given, QueryKind.BATCH)
    cluster = Cluster(options)
    setting = response_limit(options.record_limits, cluster.settings.fetch_max_bytes)
    assert setting == {"receive.message.max.bytes": str(limit)}
    config = cluster.settings.config(FORCED, {**TUNED, **setting})
    cluster.new_handle(CONSUMER, config).close()


def test_a_size_that_is_not_a_number_is_refused_by_the_client():
    servers = {"client": "confluent", "kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    given = {"kafka.message.max.bytes": "soon"}
    cluster = Cluster(parse_source_options(servers | given, QueryKind.BATCH))
    with pytest.raises(OptionsError, match=r"message\.max\.bytes"):
        cluster.new_handle(CONSUMER, cluster.settings.config(FORCED, TUNED))
