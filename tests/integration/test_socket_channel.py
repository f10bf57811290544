"""The channel over TCP with peers that are not what they should be."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_kafka.adapters.continuous import socket_channel
from pyspark_kafka.adapters.continuous.frames import (
    GREETING,
    HELLO_BYTES,
    NONCE_BYTES,
    PROOF_BYTES,
    REPLY_BYTES,
    FrameWriter,
    Handshake,
    Role,
    new_key,
    new_nonce,
)
from pyspark_kafka.adapters.continuous.socket_channel import SocketEpochChannel
from pyspark_kafka.adapters.continuous.socket_task_channel import SocketTaskChannel
from pyspark_kafka.domain.continuous.messages import (
    AssignPartitions,
    StopTask,
    TaskDrained,
    TaskId,
    write_message,
)
from pyspark_kafka.domain.errors import DriverLostError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import ChannelAddress
from pyspark_kafka.testing import await_until

Talk = Callable[[socket.socket, bytes], None]

PROGRAMS = Path(__file__).parent / "programs"
HELD, OTHER = TaskId(1, 0, "held"), TaskId(1, 1, "other")
SECRET = b"content-that-no-log-shows"


@pytest.fixture
def channel():
    channel = SocketEpochChannel(ping_interval_s=0.1, handshake_timeout_s=0.5)
    yield channel
    channel.close()


def assert_heard(channel: SocketEpochChannel, task: SocketTaskChannel, task_id: TaskId) -> None:
    task.send(TaskDrained(task_id))
    assert list(channel.receive(10.0)) == [TaskDrained(task_id)]


@pytest.fixture
def task(channel):
    task = SocketTaskChannel(channel.address, driver_timeout_s=5.0)
    assert_heard(channel, task, HELD)
    yield task
    task.close()


class Peer:
    """A connection to a driver that speaks the protocol as far as a test wants."""

    def __init__(self, address: ChannelAddress) -> None:
        host, _, port = address.location.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 10.0)
        hello = self.read(HELLO_BYTES)
        assert hello.startswith(GREETING)
        self.handshake = Handshake(address.key, hello[len(GREETING) :], new_nonce())

    def authenticate(self) -> FrameWriter:
        self.socket.sendall(self.handshake.task_nonce + self.handshake.proof(Role.TASK))
        assert self.handshake.is_proof(Role.DRIVER, self.read(PROOF_BYTES))
        return FrameWriter(self.handshake.frame_key(Role.TASK))

    def read(self, size: int) -> bytes:
        return self.socket.recv(size, socket.MSG_WAITALL)

    def is_dropped(self) -> bool:
        with suppress(ConnectionResetError):
            while self.socket.recv(4_096):
                pass
        self.socket.close()
        return True


def drained(task: TaskId) -> bytes:
    return write_message(TaskDrained(task)).encode()


def send_garbage(peer: Peer) -> None:
    peer.socket.sendall(SECRET * 100)


def send_a_proof_of_another_key(peer: Peer) -> None:
    wrong = replace(peer.handshake, key=new_key())
    peer.socket.sendall(wrong.task_nonce + wrong.proof(Role.TASK))


def send_the_drivers_role(peer: Peer) -> None:
    peer.socket.sendall(peer.handshake.task_nonce + peer.handshake.proof(Role.DRIVER))


def send_nothing(_peer: Peer) -> None:
    """Stay silent past the deadline of the handshake."""


def send_half_a_proof(peer: Peer) -> None:
    peer.socket.sendall(peer.handshake.task_nonce)


def send_a_frame_of_another_key(peer: Peer) -> None:
    peer.authenticate()
    peer.socket.sendall(FrameWriter(new_key()).encode(drained(OTHER)))


def send_a_frame_twice(peer: Peer) -> None:
    frame = peer.authenticate().encode(b"")
    peer.socket.sendall(frame + frame)


def send_a_frame_that_is_too_large(peer: Peer) -> None:
    peer.authenticate()
    peer.socket.sendall(b"\xff" * 64)


def send_text(text: bytes) -> Callable[[Peer], None]:
    def send(peer: Peer) -> None:
        peer.socket.sendall(peer.authenticate().encode(text))

    return send


ATTACKS = {
    "garbage": send_garbage,
    "a proof of another key": send_a_proof_of_another_key,
    "the driver's role": send_the_drivers_role,
    "nothing": send_nothing,
    "half a proof": send_half_a_proof,
    "a frame of another key": send_a_frame_of_another_key,
    "a frame twice": send_a_frame_twice,
    "a frame too large": send_a_frame_that_is_too_large,
    "no JSON": send_text(SECRET),
    "no UTF-8": send_text(b'"\xff\xfe"'),
    "an unknown type": send_text(b'{"type":"' + SECRET + b'"}'),
    "a list as type": send_text(b'{"type":[]}'),
    "too deep": send_text(b"[" * 100_000),
    "no offsets": send_text(drained(OTHER).replace(b"TaskDrained", b"TaskReport")),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_peer_that_is_no_task_is_dropped(attack, channel, task, caplog):
    peer = Peer(channel.address)
    ATTACKS[attack](peer)
    assert peer.is_dropped()
    assert list(channel.receive(0)) == []
    [line] = caplog.messages
    assert line.startswith("Dropped a connection from 127.0.0.1:")
    assert SECRET.decode() not in line
    assert len(line.splitlines()) == 1
    assert_heard(channel, task, HELD)
    channel.send(HELD, StopTask())
    await_until(lambda: list(task.receive()) == [StopTask()])


def test_what_was_recorded_cannot_be_sent_again(channel, task):
    first = Peer(channel.address)
    recorded = first.handshake.task_nonce + first.handshake.proof(Role.TASK)
    recorded += first.authenticate().encode(drained(OTHER))
    first.socket.close()
    again = Peer(channel.address)
    again.socket.sendall(recorded)
    assert again.is_dropped()
    assert_heard(channel, task, HELD)


def test_another_message_reaches_no_other_task(channel):
    """A task that connects again gets its commands there, and its old connection is dropped."""
    old = Peer(channel.address)
    old.socket.sendall(old.authenticate().encode(drained(OTHER)))
    assert list(channel.receive(10.0)) == [TaskDrained(OTHER)]
    new = SocketTaskChannel(channel.address)
    assert_heard(channel, new, OTHER)
    assert old.is_dropped()
    channel.send(OTHER, StopTask())
    await_until(lambda: list(new.receive()) == [StopTask()])
    new.close()


def test_a_crowd_of_strangers_does_not_keep_tasks_out(channel, monkeypatch, task):
    """Their number is bounded, and so is the time that each of them has."""
    monkeypatch.setattr(socket_channel, "MAX_UNAUTHENTICATED", 4)
    host, _, port = channel.address.location.rpartition(":")
    strangers = [socket.create_connection((host, int(port))) for _ in range(12)]
    late = SocketTaskChannel(channel.address)
    assert_heard(channel, late, OTHER)
    assert list(task.receive()) == []
    late.close()
    for stranger in strangers:
        stranger.close()


def test_a_host_and_an_address_to_bind_can_be_given():
    channel = SocketEpochChannel("0.0.0.0", "localhost")  # noqa: S104
    assert channel.address.location.startswith("localhost:")
    task = SocketTaskChannel(channel.address)
    assert_heard(channel, task, OTHER)
    task.close()
    channel.close()


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        location = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(DriverLostError, match=f"{location} cannot be reached: Connection refused"):
        SocketTaskChannel(ChannelAddress("socket", location, new_key()))


@pytest.fixture
def fake_driver():
    key = new_key()
    server = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def start(talk: Talk) -> ChannelAddress:
        def serve() -> None:
            connected, _ = server.accept()
            with connected, suppress(ConnectionResetError):
                talk(connected, key)
                while connected.recv(4_096):
                    pass

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return ChannelAddress("socket", f"127.0.0.1:{server.getsockname()[1]}", key)

    yield start
    for thread in threads:
        thread.join(10.0)
    server.close()


def say_nothing(_connected: socket.socket, _key: bytes) -> None:
    """Accept only."""


def be_another_service(connected: socket.socket, _key: bytes) -> None:
    connected.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 4)


def send_the_proof_back(connected: socket.socket, _key: bytes) -> None:
    connected.sendall(GREETING + new_nonce())
    connected.sendall(connected.recv(REPLY_BYTES, socket.MSG_WAITALL)[NONCE_BYTES:])


@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        (say_nothing, "did not authenticate"),
        (be_another_service, "another service"),
        (send_the_proof_back, "does not hold the key"),
    ],
)
def test_a_server_that_is_no_driver_is_left(talk, reason, fake_driver):
    began = time.monotonic()
    with pytest.raises(DriverLostError, match=reason):
        SocketTaskChannel(fake_driver(talk), connect_timeout_s=0.5)
    assert time.monotonic() - began < 20


def test_a_frame_that_is_not_from_the_driver_ends_a_task(fake_driver):
    def inject(connected: socket.socket, key: bytes) -> None:
        nonce = new_nonce()
        connected.sendall(GREETING + nonce)
        reply = connected.recv(REPLY_BYTES, socket.MSG_WAITALL)
        handshake = Handshake(key, nonce, reply[:NONCE_BYTES])
        command = FrameWriter(handshake.frame_key(Role.TASK)).encode(b'{"type":"StopTask"}')
        connected.sendall(handshake.proof(Role.DRIVER) + command)

    task = SocketTaskChannel(fake_driver(inject))
    received: list[object] = []

    def is_lost() -> bool:
        try:
            received.extend(task.receive())
        except DriverLostError as error:
            return "not from the driver" in str(error)
        return False

    await_until(is_lost)
    assert received == []
    task.close()


@pytest.fixture
def driver():
    with subprocess.Popen(
        [sys.executable, PROGRAMS / "drive_tasks.py"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        location, key = process.stdout.readline().split()
        yield process, ChannelAddress("socket", location, bytes.fromhex(key))
        process.kill()


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_driver_that_is_killed_or_stopped_is_lost(fate, driver):
    """Its tasks end at once, or after the time-out if its machine still answers."""
    process, address = driver
    task = SocketTaskChannel(address, driver_timeout_s=2.0)
    task.send(TaskDrained(OTHER))
    await_until(lambda: list(task.receive()) == [StopTask()])
    process.send_signal(fate)
    began = time.monotonic()
    reason = "nothing was heard" if fate is signal.SIGSTOP else "the driver closed|is broken"
    with pytest.raises(DriverLostError, match=reason):
        await_until(lambda: bool(task.receive()))
    assert fate is not signal.SIGSTOP or time.monotonic() - began > 1.0
    task.close()


def test_a_fork_of_the_driver_does_not_keep_its_tasks(channel):
    """A child process has the sockets as well, and yet closing the channel ends the tasks."""
    task = SocketTaskChannel(channel.address)
    assert_heard(channel, task, OTHER)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        channel.close()
        with pytest.raises(DriverLostError, match="the driver closed"):
            await_until(lambda: bool(task.receive()))
        with pytest.raises(DriverLostError, match="cannot be reached"):
            SocketTaskChannel(channel.address)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    task.close()


def test_a_task_that_reads_nothing_does_not_hold_up_the_driver(channel, task, monkeypatch):
    monkeypatch.setattr(socket_channel, "_MAX_UNSENT_BYTES", 1_000)
    deaf = SocketTaskChannel(channel.address)
    assert_heard(channel, deaf, OTHER)
    large = AssignPartitions(
        PartitionOffsets({TopicPartition(f"{n:0200d}", 0): 1 for n in range(10_000)})
    )
    for _ in range(10):
        channel.send(OTHER, large)
    channel.send(HELD, StopTask())
    await_until(lambda: list(task.receive()) == [StopTask()])
    with pytest.raises(DriverLostError):
        deaf.send(TaskDrained(OTHER))
    deaf.close()


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_a_driver_with_an_ipv6_address(host):
    """Spark puts it into brackets (``Utils.addBracketsIfNeeded``)."""
    channel = SocketEpochChannel(host)
    task = SocketTaskChannel(channel.address)
    assert_heard(channel, task, HELD)
    task.close()
    channel.close()


def test_a_driver_whose_name_has_an_ipv6_address_only(monkeypatch):
    found = socket.getaddrinfo("::1", 0, type=socket.SOCK_STREAM)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    families = []

    def refuse(*_: object, family: int, **__: object) -> None:
        families.append(family)
        raise OSError("enough")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(OSError, match="enough"):
        SocketEpochChannel("driver.example")
    assert families == [socket.AF_INET6]
