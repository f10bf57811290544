"""The contract suite of ``ClusterDescriber``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..domain.errors import BrokerUnreachableError
from ..domain.security.rights import Operation
from .world import Capability, World, WorldContract

if TYPE_CHECKING:
    from ..ports.cluster import ClusterDescriber


def _describer(world: World, **options: str) -> ClusterDescriber:
    made: ClusterDescriber = world.container(**options).cluster_describer()
    return made


class ClusterDescriberContract(WorldContract):
    """The contract of ``ClusterDescriber``; a subclass overrides the fixture ``world``."""

    def test_every_partition_has_brokers(self, world: World) -> None:
        """Each partition of each topic has a leader, which is one of its replicas in sync."""
        one, other = world.topic(3), world.topic()
        found = _describer(world).describe_topics([one, other])
        assert {name: sorted(topic.partitions) for name, topic in found.items()} == {
            one: [0, 1, 2],
            other: [0],
        }
        for topic in found.values():
            for partition in topic.partitions.values():
                assert partition.leader in partition.in_sync
                assert partition.in_sync <= partition.replicas

    def test_leaders_are_brokers(self, world: World) -> None:
        """Each broker is named once, in order, and leaders are among them."""
        topic = world.topic(3)
        made = _describer(world)
        ids = [broker.broker_id for broker in made.brokers()]
        assert ids == sorted(set(ids))
        described = made.describe_topics([topic])[topic]
        assert {each.leader for each in described.partitions.values()} <= set(ids)

    def test_a_broker_without_a_rack_has_an_empty_one(self, world: World) -> None:
        """The protocol's null is no rack."""
        assert all(isinstance(each.rack, str) for each in _describer(world).brokers())

    def test_a_selector_of_replicas_is_a_class_or_empty(self, world: World) -> None:
        """Kafka's default is null, which is not a class of that name."""
        selector = _describer(world).replica_selector()
        assert not selector or "." in selector

    def test_versions_of_apis_are_ranges(self, world: World) -> None:
        """No API ends before it begins."""
        found = _describer(world).api_versions()
        if found is not None:
            assert all(0 <= first <= last for first, last in found.values())

    def test_topics_that_do_not_exist_are_left_out(self, world: World) -> None:
        """An unknown topic is no error, and is not created."""
        topic, unknown = world.topic(), world.fresh_name()
        made = _describer(world)
        for _ in range(2):
            assert made.describe_topics([topic, unknown]).keys() == {topic}
        assert made.describe_topics([unknown]) == {}

    def test_no_topics_are_described_without_names(self, world: World) -> None:
        """A request without names does not mean all topics."""
        world.topic()
        assert _describer(world).describe_topics([]) == {}

    def test_added_partitions_are_described(self, world: World) -> None:
        """Each call asks the cluster again."""
        world.require(Capability.ADD_PARTITIONS)
        topic = world.topic()
        made = _describer(world)
        assert len(made.describe_topics([topic])[topic].partitions) == 1
        world.add_partitions(topic, 3)
        assert len(made.describe_topics([topic])[topic].partitions) == 3

    def test_a_user_without_limits_may_read_and_write(self, world: World) -> None:
        """Rights are operations that the user may do, where the broker returns them."""
        topic = world.topic()
        allowed = _describer(world).describe_topics([topic])[topic].operations
        if allowed is not None:
            assert allowed >= {Operation.DESCRIBE, Operation.READ, Operation.WRITE}

    def test_rights_on_a_new_group_are_known(self, world: World) -> None:
        """A group need not exist."""
        world.require(Capability.GROUPS)
        allowed = _describer(world).group_operations(world.fresh_name())
        if allowed is not None:
            assert allowed >= {Operation.DESCRIBE, Operation.READ}

    def test_rights_on_a_new_transactional_id_are_known(self, world: World) -> None:
        """An id need not have been used."""
        world.require(Capability.TRANSACTIONS)
        allowed = _describer(world).transactional_id_operations(world.fresh_name())
        if allowed is not None:
            assert Operation.DESCRIBE in allowed

    def test_an_unreachable_cluster_is_an_error(self, world: World) -> None:
        """No answer is not an empty one."""
        world.require(Capability.OUTAGES)
        made = _describer(world, **world.unreachable)
        topic = world.topic()
        for ask in (made.brokers, lambda: made.describe_topics([topic])):
            with pytest.raises(BrokerUnreachableError):
                ask()

    def test_closing_twice_is_allowed(self, world: World) -> None:
        """A second call of close has no effect."""
        made = _describer(world)
        made.describe_topics([world.topic()])
        made.close()
        made.close()
