"""A broker: it answers requests by its own logs and by what it knows of the cluster."""

from collections import deque
from collections.abc import Callable
from typing import Final
from uuid import UUID

from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.decisions import Decisions, Fired
from ..engine.outcome import ViolationError
from . import messages
from .cluster import Cluster, Known, Member
from .faults import ANSWERS, Fault, ReadingSettings, Release
from .logs import Partition, Replica
from .messages import Answer, Asked, Described, Fetch, Led
from .network import Line, Network

NONE: Final = 0
OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC: Final = 3
NOT_LEADER: Final = 6
FENCED_EPOCH: Final = 74
UNKNOWN_EPOCH: Final = 75
LOGIN_FAILED: Final = 58
UNKNOWN_ID: Final = 100
PASSING_ERRORS: Final = (-1, 5, 6, 7, 8, 9, 56, 100)
"""Errors that a broker may send of a partition at any time, UNKNOWN_SERVER_ERROR among them."""

_NO_ID: Final = UUID(int=0)
_SETUP: Final = ("versions", "login")
"""The calls that a listener answers before a login."""

_UNANSWERED: Final = (Fault.CLOSES_BEFORE, Fault.CLOSES_INSIDE)
_LOGIN: Final = ((17, 1, 1), (36, 0, 1))
_SUPPORTED: Final = {
    Release.WITH_IDS: ((1, 4, 17), (3, 0, 12), *_LOGIN, (18, 0, 4), (23, 2, 4)),
    Release.COMPARING: ((1, 0, 12), (3, 0, 9), *_LOGIN, (18, 0, 3), (23, 0, 3)),
    Release.ASKED: ((1, 0, 11), (3, 0, 9), *_LOGIN, (18, 0, 3), (23, 0, 3)),
}
_NAMES: Final = {
    messages.FETCH: "fetch",
    messages.METADATA: "metadata",
    messages.VERSIONS: "versions",
    messages.EPOCH_END: "epochs",
}
Tell = Callable[[str, str, object, object], None]


class _Connection:
    """A connection, whose requests are handled one at a time."""

    def __init__(self, broker: "Broker", line: Line) -> None:
        self._broker = broker
        self._line = line
        self._requests: deque[bytes] = deque()
        self._is_busy = False
        self._waiting: Fetch | None = None
        self._number = 0
        line.on_request = self._receive
        line.on_close = self._forget

    def _forget(self) -> None:
        self._broker.connections.pop(self, None)

    def _receive(self, frame: bytes) -> None:
        self._requests.append(frame)
        if not self._is_busy:
            self._handle()

    def _handle(self) -> None:
        self._is_busy = True
        frame = self._requests.popleft()
        api, version, correlation_id = messages.header_of(frame)
        broker = self._broker
        if api == messages.FETCH:
            self._fetch(messages.read_fetch(frame))
        elif api == messages.METADATA:
            self._answer("metadata", broker.metadata(frame))
        elif api == messages.VERSIONS:
            supported = _SUPPORTED[broker.cluster.settings.release]
            self._answer(
                "versions", messages.versions_response(min(version, 4), correlation_id, supported)
            )
        elif api == messages.HANDSHAKE:
            self._answer("login", messages.handshake_response(correlation_id))
        elif api == messages.LOGIN:
            self._log_in(correlation_id)
        elif api == messages.EPOCH_END:
            self._answer("epochs", broker.epoch_ends(frame))
        else:
            raise ValueError(f"a request {api}")

    def _log_in(self, correlation_id: int) -> None:
        network, settings = self._broker.network, self._broker.cluster.settings
        client, is_refused = network.client, self._broker.cluster.refuses_logins
        if client.has_reported:
            raise ViolationError("a refused login is repeated", self._broker.name)
        if is_refused:
            client.was_refused = True
        else:
            self._line.expires_ms = network.scheduler.now_ms + settings.session_ms
        error = LOGIN_FAILED if is_refused else NONE
        self._answer("login", messages.login_response(correlation_id, error, settings.session_ms))

    # Fetches wait for records

    def _fetch(self, fetch: Fetch) -> None:
        answers = self._broker.fetched(fetch)
        if _has_something(answers):
            self._send_fetched(fetch, answers)
            return
        self._waiting = fetch
        self._number += 1
        number = self._number
        self._broker.network.scheduler.at(max(1, fetch.max_wait_ms), lambda: self._give_up(number))

    def look_again(self) -> None:
        """Answer if there are records by now."""
        if self._waiting is not None and not self._line.is_closed:
            answers = self._broker.fetched(self._waiting)
            if _has_something(answers):
                fetch, self._waiting = self._waiting, None
                self._send_fetched(fetch, answers)

    def _give_up(self, number: int) -> None:
        if self._waiting is not None and number == self._number and not self._line.is_closed:
            fetch, self._waiting = self._waiting, None
            self._send_fetched(fetch, self._broker.fetched(fetch))

    def _send_fetched(self, fetch: Fetch, answers: list[Answer]) -> None:
        broker = self._broker
        fault = broker.fault_of("fetch")
        throttle_ms = 0
        if fault and fault.kind is Fault.THROTTLES:
            throttle_ms = fault.between(100, 5_000)
        elif fault and fault.kind is Fault.ERROR:
            answers = _with_error(answers, fault)
        elif fault and fault.kind is Fault.CORRUPT:
            answers = broker.damaged(answers, fault)
        for answer in answers:
            broker.tell_answer(answer)
        response = messages.fetch_response(fetch, answers, throttle_ms)
        broker.max_response_bytes = max(broker.max_response_bytes, len(response))
        self._deliver("fetch", response, fault)

    # Sending

    def _answer(self, call: str, response: bytes) -> None:
        self._deliver(call, response, self._broker.fault_of(call))

    def _deliver(self, call: str, response: bytes, fault: Fired | None) -> None:
        parts, line = [(0, response)], self._line
        kind = fault.kind if fault else None
        if fault:
            self._broker.tell(call, "", fault.kind.value)
            parts = _parts(response, fault)
        if kind is Fault.SILENT:
            return
        line.has_answered |= call not in _SETUP and kind not in _UNANSWERED
        line.send(parts)
        if kind in (Fault.CLOSES_BEFORE, Fault.CLOSES_INSIDE, Fault.CLOSES_AFTER):
            assert fault is not None
            line.close(is_reset=fault.between(0, 1) == 1)
            return
        self._is_busy = False
        if self._requests and not line.is_closed:
            self._handle()

    def end(self, keep: int, *, is_reset: bool) -> None:
        """End with the broker's process: some bytes of what it sent still arrive."""
        self._line.close(is_reset=is_reset, keep=keep)


def _parts(response: bytes, fault: Fired) -> list[tuple[int, bytes]]:
    """Return what is sent of a response, and when."""
    if fault.kind is Fault.SLOW:
        return [(fault.between(50, 3_000), response)]
    if fault.kind is Fault.TWICE:
        return [(0, response), (fault.between(0, 20), response)]
    if fault.kind is Fault.CLOSES_BEFORE:
        return []
    cut = fault.between(1, len(response) - 1)
    if fault.kind is Fault.CLOSES_INSIDE:
        return [(0, response[:cut])]
    if fault.kind is Fault.IN_PARTS:
        rest = fault.between(cut, len(response) - 1)
        pauses = [fault.between(1, 400) for _ in range(3)]
        pieces = (response[:cut], response[cut:rest], response[rest:])
        return list(zip(pauses, pieces, strict=True))
    return [(0, response)]


def _has_something(answers: list[Answer]) -> bool:
    return any(
        each.records or each.error or each.replica >= 0 or each.diverging for each in answers
    )


def _with_error(answers: list[Answer], fault: Fired) -> list[Answer]:
    place = fault.between(0, len(answers) - 1)
    error = PASSING_ERRORS[fault.between(0, len(PASSING_ERRORS) - 1)]
    if error == UNKNOWN_ID and not isinstance(answers[place].asked.topic, UUID):
        error = UNKNOWN_TOPIC
    answers[place] = Answer(answers[place].asked, error)
    return answers


class Broker:
    """A listener at a member's address."""

    def __init__(
        self,
        cluster: Cluster,
        member: Member,
        network: Network,
        decisions: Decisions[ReadingSettings],
        tell: Callable[[str, str, object, object], None],
    ) -> None:
        self.cluster = cluster
        self.member = member
        self.network = network
        self.connections: dict[_Connection, None] = {}
        self.damaged_of: set[TopicPartition] = set()
        self.max_response_bytes = 0
        self._decisions = decisions
        self._tell = tell
        self.name = f"broker {member.number}"
        cluster.on_written.append(lambda _: self.look_again())
        self.listen()

    def tell(self, call: str, subject: object, outcome: object) -> None:
        self._tell(self.name, call, subject, outcome)

    def listen(self) -> None:
        self.network.listeners[self.member.host, self.member.port] = self._accept

    def end(self, fired: Fired) -> None:
        """End the process: the other ends of its connections may get a part of what was sent."""
        self.network.listeners.pop((self.member.host, self.member.port), None)
        for connection in list(self.connections):
            keep = fired.between(0, 3_000) if fired.between(0, 2) else 1 << 30
            connection.end(keep, is_reset=fired.between(0, 1) == 1)
        self.connections.clear()

    def look_again(self) -> None:
        if self.member.is_alive:
            for connection in list(self.connections):
                connection.look_again()

    def _accept(self, line: Line) -> None:
        self.connections[_Connection(self, line)] = None

    def fault_of(self, call: str) -> Fired | None:
        kinds = ANSWERS if call == "fetch" else ANSWERS[:7]
        return self._decisions.one_of(self.name, call, kinds)

    # Metadata

    def metadata(self, frame: bytes) -> bytes:
        version, correlation_id, topics = messages.read_metadata(frame)
        view = self.member.view
        described = [self._described(name) for name in topics]
        self.tell("metadata", ", ".join(topics), _leaders(described))
        return messages.metadata_response(version, correlation_id, view.nodes, described)

    def _described(self, name: str) -> Described:
        view = self.member.view
        if name not in view.ids:
            return Described(name, UNKNOWN_TOPIC, _NO_ID, ())
        nodes = {node.number for node in view.nodes}
        led = [
            Led(
                known.partition.name.partition,
                known.leader if known.leader in nodes else -1,
                known.epoch,
                sorted(known.partition.replicas),
            )
            for known in view.partitions.values()
            if known.partition.name.topic == name
        ]
        return Described(name, NONE, view.ids[name], led)

    # Fetches

    def fetched(self, fetch: Fetch) -> list[Answer]:
        answers = []
        left, must_send_one = fetch.max_bytes, True
        for asked in fetch.asked:
            answer = self._fetched(fetch, asked, left, must_send_one=must_send_one)
            left -= min(left, len(answer.records))
            must_send_one = must_send_one and not answer.records
            answers.append(answer)
        return answers

    def _fetched(self, fetch: Fetch, asked: Asked, left: int, *, must_send_one: bool) -> Answer:
        known, error = self._known(asked)
        if known is None:
            return Answer(asked, error)
        partition = known.partition
        replica = partition.replicas.get(self.member.number)
        if replica is None:
            return Answer(asked, NOT_LEADER)
        if asked.leader_epoch >= 0 and asked.leader_epoch != known.epoch:
            is_old = asked.leader_epoch < known.epoch
            return Answer(asked, FENCED_EPOCH if is_old else UNKNOWN_EPOCH)
        if known.leader == self.member.number:
            near = self._near(fetch.rack, partition, asked.offset)
            if near is not None:
                return Answer(asked, NONE, replica.high_watermark, replica=near)
        return self._read(fetch, asked, replica, left, must_send_one=must_send_one)

    def _known(self, asked: Asked) -> tuple[Known | None, int]:
        view = self.member.view
        name = asked.topic
        if isinstance(name, UUID):
            names = [each for each, topic_id in view.ids.items() if topic_id == name]
            if not names:
                return None, UNKNOWN_ID
            name = names[0]
        known = view.partitions.get(TopicPartition(name, asked.number))
        return known, UNKNOWN_TOPIC

    def _near(self, rack: str, partition: Partition, offset: int) -> int | None:
        """Return the replica in a client's rack that the leader names (KIP-392)."""
        if not rack or rack == self.member.rack:
            return None
        members = self.cluster.members
        for node in partition.in_sync:
            log = partition.replicas[node]
            if members[node].rack == rack and log.start <= offset <= log.end:
                return node
        return None

    def _read(
        self, fetch: Fetch, asked: Asked, log: Replica, left: int, *, must_send_one: bool
    ) -> Answer:
        offset = asked.offset
        stable = log.stable()
        state = (log.high_watermark, stable.offset if fetch.is_committed else -1, log.start)
        if asked.last_epoch >= 0:
            found = log.end_of(asked.last_epoch)
            if found[0] < 0 or offset < log.start:
                return Answer(asked, OUT_OF_RANGE)
            if found[0] < asked.last_epoch or found[1] < offset:
                return Answer(asked, NONE, *state, diverging=found)
        if not log.start <= offset <= log.end:
            return Answer(asked, OUT_OF_RANGE)
        end = stable.offset if fetch.is_committed else log.high_watermark
        data, last = _cut(log, offset, end, min(left, asked.max_bytes), must_send_one=must_send_one)
        aborted = [
            (producer, first)
            for producer, first, marker in stable.aborted
            if fetch.is_committed and first < last and marker >= offset
        ]
        return Answer(asked, NONE, *state, aborted, records=data)

    def damaged(self, answers: list[Answer], fault: Fired) -> list[Answer]:
        """Change a byte so that only the checksum shows it."""
        for place, answer in enumerate(answers):
            data = answer.records
            size = int.from_bytes(data[8:12], "big") + 12
            if 61 < size <= len(data) and data[16] == 2:
                at = fault.between(21, size - 1)
                changed = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
                answers[place] = answer._replace(records=changed)
                self._note_damage(answer.asked)
                return answers
        return answers

    def _note_damage(self, asked: Asked) -> None:
        known, _ = self._known(asked)
        if known is not None:
            self.damaged_of.add(known.partition.name)

    def tell_answer(self, answer: Answer) -> None:
        asked = answer.asked
        known, _ = self._known(asked)
        name = known.partition.name if known else f"?-{asked.number}"
        if answer.error:
            said = f"error {answer.error}"
        elif answer.diverging:
            said = f"its epoch {answer.diverging[0]} ends at {answer.diverging[1]}"
        elif answer.replica >= 0:
            said = f"ask broker {answer.replica}"
        else:
            said = f"{len(answer.records)} bytes"
        epoch = f" in epoch {asked.leader_epoch}" if asked.leader_epoch >= 0 else ""
        self.tell("fetch", f"{name} from {asked.offset}{epoch}", said)

    # Epochs

    def epoch_ends(self, frame: bytes) -> bytes:
        correlation_id, asked = messages.read_epoch_request(frame)
        answers = []
        for each in asked:
            known = self.member.view.partitions.get(TopicPartition(each.topic, each.number))
            if known is None:
                answers.append((each, UNKNOWN_TOPIC, -1, -1))
            elif known.leader != self.member.number:
                answers.append((each, NOT_LEADER, -1, -1))
            elif each.leader_epoch >= 0 and each.leader_epoch != known.epoch:
                is_old = each.leader_epoch < known.epoch
                answers.append((each, FENCED_EPOCH if is_old else UNKNOWN_EPOCH, -1, -1))
            else:
                log = known.partition.replicas[self.member.number]
                answers.append((each, NONE, *log.end_of(each.epoch)))
        return messages.epoch_response(correlation_id, answers)


def _leaders(described: list[Described]) -> str:
    return ", ".join(
        f"{topic.name}-{led.number} at {led.leader} in {led.epoch}"
        for topic in described
        for led in topic.partitions
    )


def _cut(
    log: Replica, offset: int, end: int, limit: int, *, must_send_one: bool
) -> tuple[bytes, int]:
    """Return bytes from the batch on that has an offset, and the offset after them.

    The last batch may be cut off, but a first one alone is not (KIP-74).
    """
    data, last = b"", offset
    for batch in log.from_offset(offset, end):
        if not data and len(batch.data) > limit:
            return (batch.data, batch.last_offset + 1) if must_send_one else (b"", offset)
        last = batch.last_offset + 1
        data += batch.data
        if len(data) >= limit:
            return data[:limit], last
    return data, last
