"""``pyspark-kafka topics``: list topics."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..bootstrap.container import closing_clients, container_for
from .process import ending_with_the_pipe, logs_redirected_to
from .topic_list_json import topic_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..domain.cluster.topics import TopicSummary
    from .topic_list_arguments import TopicListSettings


def run_topics(settings: TopicListSettings) -> int:
    """List topics, and return the exit status.

    :raises PysparkKafkaError: if the cluster cannot be asked.
    """
    options = settings.connection.source_options(subscribePattern=settings.pattern)
    with (
        logs_redirected_to(logging.NullHandler()),
        closing_clients(container_for(options)) as container,
    ):
        topics = container.topic_list().fetch(options.subscription)
    with ending_with_the_pipe():
        if settings.as_json:
            for topic in topics:
                print(topic_json(topic), flush=True)
        else:
            _print_table(topics, by_partition=settings.by_partition)
    return 0


def _print_table(topics: Sequence[TopicSummary], *, by_partition: bool) -> None:
    from rich.console import Console

    from .topic_list_view import TopicListView

    Console(highlight=False).print(TopicListView(topics, by_partition=by_partition))
