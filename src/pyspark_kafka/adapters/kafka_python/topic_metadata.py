"""Metadata of topics through kafka-python's admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.metadata import MetadataRequest

from .responses import check_topics

if TYPE_CHECKING:
    from collections.abc import Iterable


def topic_metadata(
    admin: Any, topics: Iterable[str] | None, *, with_operations: bool = False
) -> list[Any]:
    """Return the topics of a ``MetadataResponse``: ``describe_topics`` makes dictionaries of it.

    :raises KafkaProtocolError: if it leaves out a topic, or one has partitions as no topic has.
    """
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=None if topics is None else [topic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=with_operations,
    )

    async def ask() -> Any:
        return await admin._manager.send(request)  # noqa: SLF001

    answered: list[Any] = admin._manager.run(ask).topics  # noqa: SLF001
    check_topics(answered, topics)
    return answered
