"""Settings of topics that change under load."""

from collections.abc import Callable
from typing import Final, final

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.ports.clock import Deadline

from ..servers.kafka import SharedKafka
from .hostile.topic_settings import is_set, topic_configured
from .numbers import SoakError

COMPACTED: Final = {"cleanup.policy": "compact", "segment.ms": "500"}
_LATE: Final = 3


@final
class _LateKafka(SharedKafka):
    """Brokers, some of which do not have a change for a while."""

    asked = 0

    def _everywhere(self, condition: Callable[[int], bool]) -> bool:
        self.asked += 1
        return self.asked % _LATE == 0 and super()._everywhere(condition)


def _await(happened: Callable[[], bool], what: str) -> None:
    assert Deadline.after(30.0).poll(happened, 0.01), what


def _settings(cluster: KafkaCluster, topic: str) -> list[bool]:
    return [is_set(node.port, topic, name) for node in cluster._live_nodes() for name in COMPACTED]


def test_settings_are_reset_on_all_brokers(kafka, fresh_name):
    """A topic has settings in a block, after which it is awaited that each is reset everywhere."""
    late = _LateKafka(kafka._live_nodes())
    topic = fresh_name()
    late.create_topic(topic)
    late.asked = 0
    with topic_configured(late, topic, COMPACTED, _await):
        _await(lambda: all(_settings(late, topic)), "settings")
    assert not any(_settings(late, topic))
    assert late.asked >= _LATE * len(COMPACTED)


def test_settings_are_reset_after_an_error(kafka, fresh_name):
    """An error in the block does not leave the settings behind."""
    topic = fresh_name()
    kafka.create_topic(topic)
    with (
        pytest.raises(ZeroDivisionError),
        topic_configured(kafka, topic, COMPACTED, _await),
    ):
        raise ZeroDivisionError
    assert not any(_settings(kafka, topic))


def test_a_setting_that_is_refused(kafka, fresh_name):
    """A refusal is an error, which the admin client only returns."""
    topic = fresh_name()
    kafka.create_topic(topic)
    with (
        pytest.raises(SoakError, match=r"^\['retention.ms'\] of .+ are not changed: .*Invalid"),
        topic_configured(kafka, topic, {"retention.ms": "soon"}, _await),
    ):
        pytest.fail("the setting was taken")
