"""How large a response librdkafka accepts."""

import pytest

from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.consumer_handle import FORCED, TUNED, response_limit
from pyspark_kafka.adapters.confluent.librdkafka import CONSUMER
from pyspark_kafka.domain.errors import OptionsError

from ..options import source_of

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
    options = source_of("confluent", given)
    cluster = Cluster(options)
    setting = response_limit(options.record_limits, cluster.settings.fetch_max_bytes)
    assert setting == {"receive.message.max.bytes": str(limit)}
    config = cluster.settings.config(FORCED, {**TUNED, **setting})
    cluster.new_handle(CONSUMER, config).close()


def test_a_size_that_is_not_a_number_is_refused_by_the_client():
    cluster = Cluster(source_of("confluent", {"kafka.message.max.bytes": "soon"}))
    with pytest.raises(OptionsError, match=r"message\.max\.bytes"):
        cluster.new_handle(CONSUMER, cluster.settings.config(FORCED, TUNED))
