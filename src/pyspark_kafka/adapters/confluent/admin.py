"""The admin client and the committer of an adapter, and waiting for their answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, final

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from ...domain.errors import PysparkKafkaError
from ...ports.clock import Deadline
from .client_closing import close_in_time
from .error_codes import TIMED_OUT
from .group_committer import GroupCommitter
from .idle_watch import IdleWatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from confluent_kafka import IsolationLevel

    from ...domain.security.rights import Right
    from .cluster import Cluster

T = TypeVar("T")

METADATA: Final = "a request for metadata"
RETRY_S: Final = 0.1

_EVENTS_S: Final = 0.05
"""How often a waiting request checks whether the login was refused."""


class ListedOffset(Protocol):
    """``ListOffsetsResultInfo``."""

    offset: int


ListedOffsets: TypeAlias = Mapping[TopicPartition, ListedOffset | KafkaError]


@final
class OffsetsAdmin(AdminClient):
    """Requests offsets with one future for all partitions of a request.

    ``AdminClient.list_offsets`` makes a future for each of them, which takes more than half of the
    processor time of a request.
    """

    def request_offsets(
        self, partitions: Sequence[TopicPartition], isolation_level: IsolationLevel, timeout: float
    ) -> Future[ListedOffsets]:
        """Request the offset of each partition; its ``offset`` is a timestamp, or -1 or -2."""
        answer: Future[ListedOffsets] = Future()
        answer.set_running_or_notify_cancel()
        super(AdminClient, self).list_offsets(  # the method in C
            list(partitions),
            answer,
            isolation_level_value=isolation_level.value,
            request_timeout=timeout,
        )
        return answer


@final
class AdminSession:
    """An admin client and the committer of a group, each created at first use.

    Once certificates were replaced, the session creates new ones. While they are idle, a thread
    handles their events.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._watch = IdleWatch(cluster.settings)
        self._admin: Any = None
        self._committer: GroupCommitter | None = None
        self._group_id = ""

    def in_use(self) -> AbstractContextManager[None]:
        """Leave the events to the thread of this block; blocks may be nested."""
        return self._watch.in_use()

    def client(self) -> Any:
        """Return the admin client.

        :raises PysparkKafkaError: as ``Cluster.make``.
        """
        self.drop_outdated()
        if self._admin is None:
            self._admin = self._cluster.make(OffsetsAdmin, {})
            self._watch.start(self)
        return self._admin

    def committer(self, group_id: str) -> GroupCommitter:
        """Return the committer of a group; close another group's committer.

        :raises PysparkKafkaError: as ``Cluster.make``.
        """
        self.drop_outdated()
        if self._group_id != group_id:
            self.close_committer()
        if self._committer is None:
            self._committer = GroupCommitter(self._cluster, group_id)
            self._group_id = group_id
            self._watch.start(self)
        return self._committer

    def wait(self, answers: Iterable[Future[Any]], timeout_s: float) -> None:
        """Wait for responses.

        librdkafka looks for requests that have timed out once a second, and repeats some.

        :raises KafkaException: if they do not come in time.
        :raises PysparkKafkaError: if the login is refused.
        """
        deadline = Deadline.after(timeout_s)
        # One after another: waiting for all of them checks each one again in every interval.
        for answer in answers:
            while not answer.done() and wait([answer], min(_EVENTS_S, deadline.remaining)).not_done:
                self.handle_events()
                if deadline.has_passed:
                    raise KafkaException(KafkaError(TIMED_OUT))

    def handle_events(self) -> None:
        """Raise the refusal of a login, after which the clients must not log in again."""
        for client in self._clients:
            client.poll(0)
        try:
            self._cluster.errors.raise_refusal()
        except PysparkKafkaError:
            self.close()
            raise

    def handle_idle_events(self) -> bool:
        """Implement ``Watched``."""
        with suppress(PysparkKafkaError):
            self.handle_events()
        return bool(self._clients)

    def error(self, request: str, error: KafkaError, *rights: Right) -> Exception:
        """Return this library's error for a request of the admin client."""
        if self._admin is not None:
            # The event with the reason why it could not connect has to be polled.
            self._admin.poll(0)
        return self._cluster.errors.error(request, error, *rights)

    def drop_outdated(self) -> None:
        """Close the clients if certificates or keys were replaced."""
        if self._cluster.settings.is_outdated:
            self.close()

    def close(self) -> None:
        """Close both clients; the session may be used again."""
        with self.in_use(), ExitStack() as closing:
            closing.callback(self.close_committer)
            closing.callback(self._close_admin)

    def close_committer(self, max_s: float = math.inf) -> None:
        """Close the committer, if there is one, as ``GroupCommitter.close``."""
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close(max_s)

    @property
    def _clients(self) -> list[Any]:
        """The clients that are open, whose events have to be handled."""
        return [each for each in (self._admin, self._committer) if each is not None]

    def _close_admin(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            # An error that is being raised may refer to it as well, and so keep its threads.
            close_in_time(partial(admin.__exit__, None, None, None))


def result_of(answer: Future[T]) -> T | KafkaError:
    """Return a response, or its error; a time-out if there is none yet."""
    if not answer.done():
        return KafkaError(TIMED_OUT)
    try:
        return answer.result()
    except KafkaException as error:
        refused: KafkaError = error.args[0]
        return refused
