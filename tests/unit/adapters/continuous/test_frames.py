from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.adapters.continuous.frames import (
    MAX_PAYLOAD_BYTES,
    PING,
    FrameError,
    FrameReader,
    FrameWriter,
    Handshake,
    Role,
    new_key,
    new_nonce,
)

KEY = bytes(range(32))


def encode(*payloads: bytes) -> list[bytes]:
    writer = FrameWriter(KEY)
    return [writer.encode(payload) for payload in payloads]


def decode(*received: bytes) -> list[bytes]:
    reader = FrameReader(KEY)
    return [payload for chunk in received for payload in reader.decode(chunk)]


@given(st.lists(st.binary(max_size=20), max_size=5), st.integers(1, 50))
def test_frames_arrive_in_pieces_of_any_size(payloads, size):
    stream = b"".join(encode(*payloads))
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert decode(*pieces) == payloads


def test_the_largest_payload_fits():
    largest = bytes(MAX_PAYLOAD_BYTES)
    assert decode(*encode(largest)) == [largest]
    with pytest.raises(ValueError, match="is too large: the limit is 4194304"):
        encode(largest + b"x")


def test_a_frame_that_is_too_large_is_not_awaited():
    [frame] = encode(b"x")
    with pytest.raises(FrameError, match="too large"):
        decode((MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big") + frame[4:])


@given(st.data())
def test_no_changed_frame_is_read(data):
    [frame] = encode(b'{"type":"TaskDrained"}')
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    changed = bytearray(frame)
    changed[bit // 8] ^= 1 << bit % 8
    with suppress(FrameError):
        assert decode(bytes(changed)) == []


@pytest.mark.parametrize("order", [(0, 0), (1,), (1, 0), (0, 2)])
def test_no_frame_is_repeated_moved_or_left_out(order):
    frames = encode(b"0", PING, b"2")
    with pytest.raises(FrameError, match="not authentic"):
        decode(*(frames[number] for number in order))


def test_frames_of_another_key_are_not_read():
    with pytest.raises(FrameError, match="not authentic"):
        decode(FrameWriter(new_key()).encode(b"x"))


def test_a_proof_is_of_one_side_key_and_connection():
    handshake = Handshake(KEY, new_nonce(), new_nonce())
    others = [
        Handshake(new_key(), handshake.driver_nonce, handshake.task_nonce),
        Handshake(KEY, new_nonce(), handshake.task_nonce),
        Handshake(KEY, handshake.driver_nonce, new_nonce()),
    ]
    proof = handshake.proof(Role.TASK)
    assert handshake.is_proof(Role.TASK, proof)
    assert not handshake.is_proof(Role.DRIVER, proof)
    assert not any(other.is_proof(Role.TASK, proof) for other in others)
    assert not handshake.is_proof(Role.TASK, b"")


def test_each_direction_has_its_own_key():
    handshake = Handshake(KEY, new_nonce(), new_nonce())
    assert len({handshake.frame_key(role) for role in Role} | {KEY}) == 3


def test_a_handshake_does_not_show_its_key():
    """Its ``repr`` is without the key."""
    shown = repr(Handshake(b"k" * 32, b"d" * 32, b"t" * 32))
    assert "kkkk" not in shown
