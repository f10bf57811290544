"""The kinds of faults, and those that a schedule may have."""

import enum
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Self

from ..engine.settings import Settings


class Fault(enum.Enum):
    """A kind of fault; the values are the words of a story."""

    # Of answers
    SLOW = "answers late"
    SILENT = "never answers"
    IN_PARTS = "answers in parts"
    CLOSES_BEFORE = "closes the connection instead of an answer"
    CLOSES_INSIDE = "closes the connection inside of an answer"
    CLOSES_AFTER = "closes the connection after an answer"
    TWICE = "answers twice"
    THROTTLES = "asks for a pause"
    ERROR = "answers with an error"
    CORRUPT = "sends a damaged batch"
    # Of the network
    SMALL_SENDS = "takes a request in parts"
    BLACK_HOLE = "its packets get lost for a while"
    DEAD_ADDRESS = "a name has the address of a dead host, too"
    UNKNOWN_NAME = "names cannot be resolved for a while"
    # Of the cluster
    ELECTION = "gets another leader"
    UNCLEAN = "gets a leader that lacks records"
    CUT_OFF = "is cut off from the cluster, and answers"
    DIES = "ends"
    MOVES = "starts again at another address"
    LATE_METADATA = "learns of changes late"
    BEHIND = "does not copy what its leader writes for a while"
    RETENTION = "deletes old records"
    RECREATED = "is deleted and created again"
    # Of the reader
    READER_DIES = "its process ends"
    REASSIGNED = "is assigned again, or revoked"
    SLOW_FUNCTION = "works for long on what it got"


ANSWERS: Final = (
    Fault.SLOW,
    Fault.SILENT,
    Fault.IN_PARTS,
    Fault.CLOSES_BEFORE,
    Fault.CLOSES_INSIDE,
    Fault.CLOSES_AFTER,
    Fault.TWICE,
    Fault.THROTTLES,
    Fault.ERROR,
    Fault.CORRUPT,
)
EVENTS: Final = (
    Fault.BLACK_HOLE,
    Fault.UNKNOWN_NAME,
    Fault.ELECTION,
    Fault.UNCLEAN,
    Fault.CUT_OFF,
    Fault.DIES,
    Fault.MOVES,
    Fault.BEHIND,
    Fault.RETENTION,
    Fault.RECREATED,
)
_CALLS: Final = ("versions", "metadata", "fetch", "epochs", "offsets")
_OTHERS: Final = tuple(kind for kind in Fault if kind not in (*ANSWERS, *EVENTS))


class Release(enum.Enum):
    """The protocol of the brokers; the values are Kafka's releases."""

    WITH_IDS = "4.0"
    COMPARING = "2.7"
    """Compares epochs at each fetch, and has no topic ids."""

    ASKED = "2.4"
    """Is asked for epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSettings(Settings):
    """The sizes of a schedule."""

    is_stream: bool
    release: Release
    brokers: int
    topics: int
    partitions: int
    batches: int
    """How many batches are written to each partition."""

    faults_ms: int
    """When faults end."""

    events: int
    is_committed: bool
    transactions: int
    """How many of ten batches are of transactions."""

    is_legacy: bool
    rack: str
    metadata_age_ms: int
    request_ms: int
    api_ms: int
    poll_ms: int
    partition_bytes: int
    response_bytes: int
    function_ms: int
    rows: int
    """How many an Arrow batch has at most: what was fetched is taken in several parts."""

    eager_bytes: int
    """``EAGER_BYTES``: the next request is in flight while records are taken."""

    together: int
    """``MAX_TOGETHER``: how many ranges a request names in addition."""

    range_bytes: int
    buffer_bytes: int
    """The size of the buffer that responses share; a larger response has its own."""

    rotates_names: bool
    """Whether a server of names takes turns with the addresses of a name."""

    has_names: bool
    """Whether brokers advertise names, not addresses."""

    session_ms: int
    """How long a login is valid; 0 if there is none."""

    refuses_ms: int
    """For how long brokers refuse logins."""

    is_replaced: bool
    """Whether all brokers are replaced once everything is read."""

    @classmethod
    def of(cls, seed: int) -> Self:
        random = Random(seed)  # noqa: S311
        kinds = frozenset(
            kind
            for some in (ANSWERS, EVENTS, _OTHERS)
            for kind in random.sample(some, random.choice((0, 0, 1, 1, 2, 3)))
        )
        release = random.choice((Release.WITH_IDS,) * 4 + (Release.COMPARING, Release.ASKED))
        has_old_log = release is Release.ASKED and random.random() < 0.3
        request_ms = random.choice((600, 1_500, 4_000))
        return cls(
            seed=seed,
            kinds=kinds,
            rate=random.choice((0.02, 0.08, 0.2)),
            focus=random.choice(_CALLS),
            is_stream=random.random() < 0.6,
            release=release,
            brokers=random.randint(2, 4),
            topics=random.choice((1, 1, 1, 2)),
            partitions=random.choice((1, 1, 2, 3)),
            batches=random.choice((1, 3, 8)),
            faults_ms=random.choice((500, 2_000, 5_000)),
            events=random.choice((1, 2, 4, 8)),
            is_committed=random.random() < 0.6,
            transactions=0 if has_old_log else random.choice((0, 0, 3, 7)),
            is_legacy=has_old_log,
            rack=random.choice(("", "r0", "r1")),
            metadata_age_ms=random.choice((700, 2_000, 6_000)),
            request_ms=request_ms,
            api_ms=random.choice((request_ms, 2 * request_ms, 10_000)),
            poll_ms=random.choice((2_000, 6_000, 20_000)),
            partition_bytes=random.choice((1, 300, 2_000, 100_000, 100_000)),
            response_bytes=random.choice((1, 1_000, 20_000, 1_000_000)),
            function_ms=random.choice((5, 10, 200, 2_000)),
            rows=random.choice((1, 1, 2, 4, 64)),
            eager_bytes=random.choice((0, 100, 16_384)),
            together=random.choice((1, 2, 128)),
            range_bytes=random.choice((100, 2_000, 32_768)),
            buffer_bytes=random.choice((64, 1_000, 4_000)),
            rotates_names=random.random() < 0.5,
            has_names=random.random() < 0.3,
            is_replaced=random.random() < 0.3,
            session_ms=random.choice((0, 0, 0, 0, 0, 4_000, 12_000)),
            refuses_ms=random.choice((0, 0, 0, 2_000)),
        )

    def smaller(self) -> list[Self]:
        less = (
            replace(self, batches=max(1, self.batches // 2)),
            replace(self, events=max(1, self.events // 2)),
            replace(self, partitions=max(1, self.partitions - 1)),
            replace(self, topics=1),
            replace(self, brokers=max(2, self.brokers - 1)),
            replace(self, transactions=0),
            replace(self, function_ms=0),
            replace(self, rack=""),
            replace(self, has_names=False),
            replace(self, session_ms=0),
            replace(self, refuses_ms=0),
            replace(self, is_replaced=False),
        )
        # Without slots, ``super()`` would be enough: the class is made twice.
        return [*Settings.smaller(self), *(each for each in less if each != self)]
