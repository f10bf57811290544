"""Whether a topic is still the one that was read, by what librdkafka logs (KIP-516).

Its messages carry no id, and its functions return none for a topic that is fetched.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEBUG: Final = "debug"

_TOPIC_CHANGED: Final = re.compile(r"Topic (\S+) changed id from (\S+) to (\S+)")
"""librdkafka's line, with ``debug=metadata``, before it fetches from a recreated topic.

It goes on at the old offset (the FIXME in ``rd_kafka_topic_metadata_update``, librdkafka 2.16)."""

_ZEROS: Final = "A="
"""What base64 writes for the id of a topic that has none, or whose id is not known yet."""


def topic_debug(config: Mapping[str, str]) -> dict[str, str]:
    """Return the setting of a consumer that logs the ids of topics, and what the user asks for."""
    contexts = filter(None, (config.get(_DEBUG), "metadata"))
    return {_DEBUG: ",".join(contexts)}


@final
class TopicIds:
    """The ids of the topics that one consumer fetches.

    A line is in the queue of events before the first record of the new topic is in its queue, if
    the topic is fetched by its id (Kafka 3.1).
    """

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._replaced: set[str] = set()
        self._recreations: Counter[str] = Counter()

    def recreations(self, topic: str) -> int:
        """Return how often the topic was created again, as far as the lines say."""
        return self._recreations[topic]

    def read_line(self, line: str) -> str | None:
        """Return the topic that was created again, if a line of librdkafka's says so."""
        changed = _TOPIC_CHANGED.search(line)
        if changed is None:
            return None
        topic, old, new = changed.groups()
        known = self._ids.get(topic) or (old if old.strip(_ZEROS) else "")
        # A broker that lags behind has the id of before, and one before Kafka 2.8 has none.
        if new in self._replaced or not new.strip(_ZEROS):
            return None
        self._ids[topic] = new
        if not known or known == new:
            return None
        self._replaced.add(known)
        self._recreations[topic] += 1
        return topic
