"""Whether a topic is still the one that was read, or another one of the same name (KIP-516)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from uuid import UUID


@final
class TopicIdentity:
    """The topic that is read, by the ids that metadata and fetches have shown.

    Brokers do not learn of a topic at the same time. So metadata alone prove nothing: neither those
    from before the first fetch, nor another id while the leader still knows the one that is read.
    """

    __slots__ = ("_is_known", "_is_refused", "_other", "is_fetched_by_id", "topic_id")

    def __init__(self) -> None:
        self.topic_id: UUID | None = None
        """The id to fetch from; ``None`` on clusters without ids."""

        self.is_fetched_by_id = True
        """Whether the leader takes ids; one that takes names cannot refuse an id."""

        self._is_known = False
        self._is_refused = False
        self._other: UUID | None = None

    @property
    def is_recreated(self) -> bool:
        """Whether another topic has the name of the one that was read."""
        return self._other is not None and (self._is_refused or not self.is_fetched_by_id)

    def see(self, topic_id: UUID | None) -> None:
        """Note the topic's id by the newest metadata, ``None`` if they have none."""
        if topic_id is None:
            return
        if self.topic_id is None or not self._is_known:
            self.topic_id = topic_id
        self._other = topic_id if topic_id != self.topic_id else None

    def accept(self) -> None:
        """Note that a leader answered a fetch: from now on the topic must not be another one."""
        self._is_known = True
        self._is_refused = False

    def refuse(self) -> None:
        """Note that a leader does not know the id."""
        self._is_refused = True
