import base64
from collections.abc import Generator

import pytest

from pyspark_kafka.domain.security.login import Login
from pyspark_kafka.domain.security.scram import ScramError, scram_messages
from pyspark_kafka.domain.security.secrets import Secret

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = f"{NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
USER = Login("SCRAM-SHA-256", "user", Secret("pencil"))
"""The example of RFC 7677, section 3."""


def started(login: Login = USER) -> tuple[Generator[bytes, bytes, None], str]:
    messages = scram_messages(login, NONCE)
    return messages, next(messages).decode()


def challenge(nonce: str = SERVER_NONCE, salt: str = SALT, iterations: str = "4096") -> bytes:
    return f"r={nonce},s={salt},i={iterations}".encode()


def test_the_messages_are_the_same_as_in_the_example_of_rfc_7677():
    messages, first = started()
    assert first == f"n,,n=user,r={NONCE}"
    assert messages.send(challenge()).decode() == (
        f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        messages.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_commas_and_equals_signs_of_a_user_name_are_escaped_as_rfc_5802_says():
    _, first = started(Login("SCRAM-SHA-256", "a=b,c=3D", Secret("pencil")))
    assert first == f"n,,n=a=3Db=2Cc=3D3D,r={NONCE}"


def test_a_delegation_token_is_announced_by_the_extension_of_kip_48():
    login = Login("SCRAM-SHA-256", "user", Secret("pencil"), is_delegation_token=True)
    messages, first = started(login)
    assert first == f"n,,n=user,r={NONCE},tokenauth=true"
    assert b"p=dHzbZapW" not in messages.send(challenge())


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (challenge(nonce=NONCE), "nonce"),
        (challenge(nonce=f"x{SERVER_NONCE}"), "nonce"),
        (challenge(iterations="4095"), "asks for 4095 iterations, not for 4096 to 100000"),
        (challenge(iterations="100001"), "asks for 100001 iterations"),
        (challenge(iterations="-4096"), "malformed"),
        (challenge(iterations="4096x"), "malformed"),
        (challenge(salt="W22"), "malformed"),
        (challenge(salt=""), "malformed"),
        (b"m=x," + challenge(), "malformed"),
        (b"", "malformed"),
        (b"e=unknown-user", "'unknown-user'"),
    ],
)
def test_refused_challenge(message, reason):
    """A challenge that Java's client refuses is refused, before the password is used."""
    messages, _ = started()
    with pytest.raises(ScramError, match=reason) as caught:
        messages.send(message)
    assert "pencil" not in str(caught.value)


@pytest.mark.parametrize("iterations", ["4096", "100000"])
def test_iterations(iterations):
    """The bounds of the iterations are allowed, and so are extensions that are not known."""
    messages, _ = started()
    assert messages.send(challenge(iterations=iterations) + b",x=y").startswith(b"c=biws,r=")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"v=" + base64.b64encode(bytes(32)), "did not prove that it knows the password"),
        (b"v=", "malformed"),
        (b"", "malformed"),
        (b"e=invalid-proof", "'invalid-proof'"),
    ],
)
def test_a_broker_that_does_not_know_the_password_is_refused(message, reason):
    messages, _ = started()
    messages.send(challenge())
    with pytest.raises(ScramError, match=reason):
        messages.send(message)
