"""The requests that brokers read and the responses they send, in the versions in use."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from kafka.protocol.metadata import ApiVersionsResponse

FETCH: Final = 1
METADATA: Final = 3
HANDSHAKE: Final = 17
VERSIONS: Final = 18
EPOCH_END: Final = 23
LOGIN: Final = 36

_COMPACT_FETCH: Final = 12
_FETCH_BY_ID: Final = 13
_NO_ID: Final = UUID(int=0)

Ranges = Mapping[int, tuple[int, int]]


class Asked(NamedTuple):
    """One partition of a request; ``topic`` is its name or its id."""

    topic: str | UUID
    number: int
    leader_epoch: int
    offset: int
    last_epoch: int
    max_bytes: int


class AskedEpoch(NamedTuple):
    topic: str
    number: int
    leader_epoch: int
    epoch: int


class Answer(NamedTuple):
    """One partition of a response."""

    asked: Asked
    error: int = 0
    high_watermark: int = -1
    last_stable: int = -1
    log_start: int = -1
    aborted: Sequence[tuple[int, int]] = ()
    replica: int = -1
    records: bytes = b""
    diverging: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch request."""

    version: int
    correlation_id: int
    max_wait_ms: int
    max_bytes: int
    is_committed: bool
    asked: tuple[Asked, ...]
    rack: str


class _Fields:
    def __init__(self, frame: bytes, at: int, *, is_compact: bool) -> None:
        self._frame = frame
        self._at = at
        self._is_compact = is_compact

    def take(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._frame, self._at)
        self._at += struct.calcsize(form)
        return found

    def bytes(self, size: int) -> bytes:
        self._at += size
        return self._frame[self._at - size : self._at]

    def count(self) -> int:
        return self._varint() - 1 if self._is_compact else self.take(">i")[0]

    def text(self) -> str:
        size = self._varint() - 1 if self._is_compact else self.take(">h")[0]
        return self.bytes(max(size, 0)).decode()

    def client_id(self) -> None:
        self.bytes(max(self.take(">h")[0], 0))
        self.tags()

    def tags(self) -> None:
        if self._is_compact:
            for _ in range(self._varint()):
                self._varint()
                self.bytes(self._varint())

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._frame[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def header_of(frame: bytes) -> tuple[int, int, int]:
    """Return the API, its version, and the correlation id of a request."""
    api, version, correlation_id = struct.unpack_from(">hhi", frame)
    return api, version, correlation_id


def read_fetch(frame: bytes) -> Fetch:
    _, version, correlation_id = header_of(frame)
    fields = _Fields(frame, 8, is_compact=version >= _COMPACT_FETCH)
    fields.client_id()
    _, max_wait_ms, _, max_bytes, isolation = fields.take(">iiiib")
    fields.take(">ii")
    asked = []
    for _ in range(fields.count()):
        by_id = version >= _FETCH_BY_ID
        topic = UUID(bytes=fields.bytes(16)) if by_id else fields.text()
        asked += [_read_position(fields, topic, version) for _ in range(fields.count())]
        fields.tags()
    fields.count()
    rack = fields.text()
    return Fetch(
        version, correlation_id, max_wait_ms, max_bytes, bool(isolation), tuple(asked), rack
    )


def _read_position(fields: _Fields, topic: str | UUID, version: int) -> Asked:
    if version >= _COMPACT_FETCH:
        number, leader_epoch, offset, last_epoch, _, limit = fields.take(">iiqiqi")
        fields.tags()
    else:
        number, leader_epoch, offset, _, limit = fields.take(">iiqqi")
        last_epoch = -1
    return Asked(topic, number, leader_epoch, offset, last_epoch, limit)


def fetch_response(request: Fetch, answers: Iterable[Answer], throttle_ms: int = 0) -> bytes:
    is_compact = request.version >= _COMPACT_FETCH
    by_topic: dict[str | UUID, list[bytes]] = {}
    for answer in answers:
        encoded = _answer(answer, is_compact=is_compact)
        by_topic.setdefault(answer.asked.topic, []).append(encoded)
    tags = b"\0" if is_compact else b""
    parts = [
        struct.pack(">i", request.correlation_id),
        tags,
        struct.pack(">ihi", throttle_ms, 0, 0),
        _count(len(by_topic), is_compact=is_compact),
    ]
    for topic, encoded_answers in by_topic.items():
        named = topic.bytes if isinstance(topic, UUID) else _text(topic, is_compact=is_compact)
        count = _count(len(encoded_answers), is_compact=is_compact)
        parts += [named, count, *encoded_answers, tags]
    return _framed(*parts, tags)


def _answer(answer: Answer, *, is_compact: bool) -> bytes:
    head = struct.pack(
        ">ihqqq",
        answer.asked.number,
        answer.error,
        answer.high_watermark,
        answer.last_stable,
        answer.log_start,
    )
    tags = b"\0" if is_compact else b""
    aborted = [struct.pack(">qq", *each) + tags for each in answer.aborted]
    diverging = tags
    if answer.diverging is not None:
        diverging = b"\x01\0\x0d" + struct.pack(">iqb", *answer.diverging, 0)
    return b"".join(
        (
            head,
            _count(len(aborted), is_compact=is_compact),
            *aborted,
            struct.pack(">i", answer.replica),
            _count(len(answer.records), is_compact=is_compact),
            answer.records,
            diverging,
        )
    )


class Node(NamedTuple):
    """A broker in metadata."""

    number: int
    host: str
    port: int
    rack: str


class Led(NamedTuple):
    """A partition in metadata."""

    number: int
    leader: int
    epoch: int
    replicas: Sequence[int]


class Described(NamedTuple):
    """A topic in metadata."""

    name: str
    error: int
    topic_id: UUID
    partitions: Sequence[Led]


def read_metadata(frame: bytes) -> tuple[int, int, list[str]]:
    """Return the version, the correlation id, and the names of topics."""
    _, version, correlation_id = header_of(frame)
    fields = _Fields(frame, 8, is_compact=True)
    fields.client_id()
    topics = []
    for _ in range(fields.count()):
        if version >= 10:
            fields.bytes(16)
        topics.append(fields.text())
        fields.tags()
    return version, correlation_id, sorted(topics)


def metadata_response(
    version: int, correlation_id: int, nodes: Sequence[Node], topics: Sequence[Described]
) -> bytes:
    parts = [struct.pack(">ibi", correlation_id, 0, 0), _count(len(nodes))]
    for node in nodes:
        parts += [struct.pack(">i", node.number), _text(node.host), struct.pack(">i", node.port)]
        parts += [_text(node.rack), b"\0"]
    parts += [_text("a cluster"), struct.pack(">i", -1), _count(len(topics))]
    for topic in topics:
        parts += [struct.pack(">h", topic.error), _text(topic.name)]
        parts += [topic.topic_id.bytes if version >= 10 else b"", b"\0"]
        parts += [_count(len(topic.partitions)), *map(_led, topic.partitions)]
        parts += [struct.pack(">ib", -(2**31), 0)]
    if version <= 10:
        parts.append(struct.pack(">i", -(2**31)))
    return _framed(*parts, b"\0")


def _led(led: Led) -> bytes:
    replicas = _count(len(led.replicas)) + struct.pack(f">{len(led.replicas)}i", *led.replicas)
    error = 5 if led.leader < 0 else 0
    fields = struct.pack(">hiii", error, led.number, led.leader, led.epoch)
    return b"".join((fields, replicas, replicas, b"\x01\0"))


def read_epoch_request(frame: bytes) -> tuple[int, list[AskedEpoch]]:
    """Return the correlation id and what is asked, of version 3."""
    _, _, correlation_id = header_of(frame)
    fields = _Fields(frame, 8, is_compact=False)
    fields.client_id()
    fields.take(">i")
    asked = []
    for _ in range(fields.count()):
        topic = fields.text()
        for _ in range(fields.count()):
            number, leader_epoch, epoch = fields.take(">iii")
            asked.append(AskedEpoch(topic, number, leader_epoch, epoch))
    return correlation_id, asked


def epoch_response(
    correlation_id: int, answers: Sequence[tuple[AskedEpoch, int, int, int]]
) -> bytes:
    parts = [struct.pack(">iii", correlation_id, 0, len(answers))]
    for asked, error, epoch, end in answers:
        parts += [_text(asked.topic, is_compact=False), struct.pack(">i", 1)]
        parts.append(struct.pack(">hiiq", error, asked.number, epoch, end))
    return _framed(*parts)


@lru_cache(maxsize=64)
def _versions_body(version: int, supported: tuple[tuple[int, int, int], ...]) -> bytes:
    made = ApiVersionsResponse.ApiVersion
    response = ApiVersionsResponse(
        version=version,
        error_code=0,
        throttle_time_ms=0,
        api_keys=[
            made(api_key=api, min_version=lowest, max_version=highest)
            for api, lowest, highest in supported
        ],
    )
    response.API_VERSION = version
    response.with_header(correlation_id=0)
    return bytes(response.encode(header=True))[4:]


def versions_response(
    version: int, correlation_id: int, supported: tuple[tuple[int, int, int], ...]
) -> bytes:
    return _framed(struct.pack(">i", correlation_id), _versions_body(version, supported))


def handshake_response(correlation_id: int) -> bytes:
    return _framed(struct.pack(">ihi", correlation_id, 0, 1), _text("PLAIN", is_compact=False))


def login_response(correlation_id: int, error: int, session_ms: int) -> bytes:
    return _framed(struct.pack(">ihhiq", correlation_id, error, -1, 0, session_ms))


def _framed(*parts: bytes) -> bytes:
    content = b"".join(parts)
    return struct.pack(">i", len(content)) + content


def _count(count: int, *, is_compact: bool = True) -> bytes:
    if not is_compact:
        return struct.pack(">i", count)
    value, encoded = count + 1, bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _text(text: str, *, is_compact: bool = True) -> bytes:
    encoded = text.encode()
    if is_compact:
        return _count(len(encoded)) + encoded
    return struct.pack(">h", len(encoded)) + encoded
