"""The topics of a cluster, as a tool shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ...domain.cluster.topics import TopicSummary, summarize

if TYPE_CHECKING:
    from ...domain.subscription import Subscription
    from ...ports.cluster import ClusterDescriber
    from ...ports.reading import OffsetFetcher


@final
@dataclass(frozen=True, slots=True)
class TopicList:
    """Fetches the topics of a subscription with their offsets and descriptions."""

    fetcher: OffsetFetcher
    describer: ClusterDescriber

    def fetch(self, subscription: Subscription) -> tuple[TopicSummary, ...]:
        """Return the topics in the order of their names; raises as the two ports do."""
        partitions = self.fetcher.partitions(subscription)
        descriptions = self.describer.describe_topics({each.topic for each in partitions})
        led = frozenset(
            each
            for each in partitions
            if (topic := descriptions.get(each.topic))
            and each.partition in topic.partitions
            and topic.partitions[each.partition].leader is not None
        )
        earliest, latest = self.fetcher.earliest(led), self.fetcher.latest(led)
        return summarize(partitions, earliest, latest, descriptions)
