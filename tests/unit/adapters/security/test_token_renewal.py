"""How long a token is kept, and what follows a failed renewal."""

import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Final

import pytest

from pyspark_kafka.adapters.security.providers import token_provider
from pyspark_kafka.adapters.security.tokens import PAUSE_MS, FunctionTokenProvider, RenewedTokens
from pyspark_kafka.domain.errors import MissingDependencyError
from pyspark_kafka.domain.security.errors import AuthenticationError, TokenUnavailableError
from pyspark_kafka.domain.security.oauth import (
    AzureIdentity,
    GoogleCredentials,
    MskIam,
    TokenFunction,
)
from pyspark_kafka.ports.security.token_provider import Token, TokenProvider
from pyspark_kafka.testing import await_until

LIFE_MS: Final = 100_000


class Issuing(TokenProvider):
    """Issues numbered tokens by a clock that a test sets; ``error`` is raised instead."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.issued = 0
        self.takes_s = 0.0
        self.life_ms = LIFE_MS
        self.error: Exception | None = None
        self.kept = RenewedTokens(self, lambda: self.now_ms)

    def token(self) -> Token:
        if self.error is not None:
            raise self.error
        self.issued += 1
        time.sleep(self.takes_s)
        return Token(f"t{self.issued}", self.now_ms + self.life_ms)

    def kept_value(self) -> str:
        return str(self.kept.token().value)


REFUSED: Final = AuthenticationError("the issuer", "OAUTHBEARER", "ada", "no")


def test_a_token_is_renewed_though_the_clock_is_set_back():
    issuer = Issuing()
    issuer.life_ms = 100
    assert issuer.kept_value() == "t1"
    issuer.now_ms -= 3_600_000
    await_until(lambda: issuer.kept_value() == "t2")


@pytest.mark.parametrize("off_ms", [-3_600_000, 3_600_000])
def test_a_clock_that_is_off_does_not_shorten_a_life_that_counts_from_now(off_ms):
    """The end of a token is by the same clock, as ``expires_in`` of OIDC is."""
    issuer = Issuing()
    issuer.now_ms += off_ms
    assert [issuer.kept_value() for _ in range(2)] == ["t1", "t1"]


def test_a_token_is_used_for_most_of_its_life():
    issuing = Issuing()
    assert issuing.kept_value() == "t1"
    issuing.now_ms += 79_999
    assert issuing.kept_value() == "t1"
    issuing.now_ms += 1
    assert issuing.kept_value() == "t2"


@pytest.mark.parametrize("error", [REFUSED, TokenUnavailableError("the issuer", "no")])
def test_the_token_is_used_to_its_end_while_its_issuer_is_asked_every_ten_seconds(error, caplog):
    issuing = Issuing()
    assert issuing.kept_value() == "t1"
    issuing.error = error
    issuing.now_ms += 80_000
    with caplog.at_level(logging.WARNING, "pyspark_kafka.tokens"):
        assert issuing.kept_value() == "t1"
        issuing.now_ms += PAUSE_MS - 1
        assert issuing.kept_value() == "t1"
    assert len(caplog.records) == 1
    issuing.now_ms += LIFE_MS
    with pytest.raises(type(error)):
        issuing.kept_value()
    issuing.error = None
    with pytest.raises(type(error)):
        issuing.kept_value()
    issuing.now_ms += PAUSE_MS
    assert issuing.kept_value() == "t2"


def test_a_token_that_a_broker_refused_is_not_kept():
    issuing = Issuing()
    assert issuing.kept_value() == "t1"
    issuing.kept.forget()
    assert issuing.kept_value() == "t2"


def test_an_expired_token_is_not_used():
    issuing = Issuing()
    assert issuing.kept_value() == "t1"
    issuing.error = REFUSED
    issuing.now_ms += LIFE_MS - 1
    assert issuing.kept_value() == "t1"
    issuing.now_ms += 1
    with pytest.raises(AuthenticationError):
        issuing.kept_value()


def test_threads_that_need_a_token_at_once_share_the_token_of_one_request():
    issuing = Issuing()
    issuing.takes_s = 0.05
    together = threading.Barrier(8)

    def wait_and_ask() -> str:
        together.wait(10)
        return issuing.kept_value()

    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(wait_and_ask) for _ in range(8)]
        assert {each.result(10) for each in found} == {"t1"}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_process_has_its_own_token():
    """A process that is forked during a request neither waits for it nor shares its token."""
    issuing = Issuing()
    held = issuing.kept._local.get()
    assert held is not None
    with held.lock:
        child = os.fork()
        if not child:
            signal.alarm(10)
            is_right = issuing.kept_value() == "t1"
            os._exit(0 if is_right else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert issuing.issued == 0


def test_a_process_has_one_provider_for_a_source():
    source = TokenFunction("os:getpid")
    assert token_provider(source) is token_provider(TokenFunction("os:getpid"))
    with pytest.raises(AuthenticationError, match="it returned int, not"):
        token_provider(source).token()


@pytest.mark.parametrize(
    ("source", "module", "extra"),
    [
        (MskIam("r", session_name="x"), "aws_msk_iam_sasl_signer", "msk"),
        (AzureIdentity("missing"), "azure.identity", "azure"),
        (GoogleCredentials(), "google.auth", "google"),
    ],
)
def test_a_missing_extra(source, module, extra, monkeypatch):
    """The error of a provider whose package is missing names the extra that brings it."""
    token_provider.cache_clear()
    for name in [name for name in sys.modules if name.startswith(module)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'pyspark-kafka\[{extra}\]'"):
        token_provider(source)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no_such_module:token", "'no_such_module:token' cannot be loaded: ModuleNotFoundError"),
        ("os:no_such_function", "'os:no_such_function' cannot be loaded: AttributeError"),
        ("os:name", "'os:name' is not a function"),
        ("os:path.join", "'os:path.join' cannot be loaded: TypeError: 'path' is another module"),
        ("vault", "no provider has the given name. Known names are azure, google, msk."),
    ],
)
def test_functions_that_cannot_be_used(name, text):
    with pytest.raises(ValueError, match=r"Option 'tokenProvider': ") as raised:
        token_provider(TokenFunction(name))
    assert text in str(raised.value)


def test_another_distribution_registers_a_function(tmp_path, monkeypatch):
    metadata = tmp_path / "vault-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vault\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[pyspark_kafka.token_providers]\nvault = vault_of_a_test:token\n"
    )
    (tmp_path / "vault_of_a_test.py").write_text("def token():\n    raise KeyError('sealed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    provider = token_provider(TokenFunction("vault"))
    with pytest.raises(TokenUnavailableError, match=r"from 'vault' .*: KeyError: 'sealed'"):
        provider.token()


LATER_MS: Final = 1_000 * (int(time.time()) + 86_400)
"""A time that has not come by the end of a long run."""


@pytest.mark.parametrize(
    ("token", "error", "text"),
    [
        (Token(b"abc", LATER_MS), AuthenticationError, "characters that bearer tokens"),  # type: ignore[arg-type]
        (Token("abc\n", LATER_MS), AuthenticationError, "characters that bearer tokens"),
        (Token("ab\0c", LATER_MS), AuthenticationError, "characters that bearer tokens"),
        (Token("", LATER_MS), AuthenticationError, "characters that bearer tokens"),
        (Token("abc", 10**20), AuthenticationError, "'expires_ms' is no time"),
        (Token("abc", "9"), AuthenticationError, "'expires_ms' is no time"),  # type: ignore[arg-type]
        (Token("abc", float("nan")), AuthenticationError, "'expires_ms' is no time"),  # type: ignore[arg-type]
        (Token("abc", LATER_MS, "a\0b"), AuthenticationError, "principal"),
        (
            Token("abc", LATER_MS, extensions=(("pool", "a\1auth=Bearer b"),)),
            AuthenticationError,
            "an extension",
        ),
        (Token("abc", LATER_MS // 1_000), TokenUnavailableError, "expired already"),
    ],
)
def test_what_a_function_returns_is_a_token_that_clients_can_send(token, error, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokens_of_a_test", ModuleType("tokens_of_a_test"))
    monkeypatch.setattr("tokens_of_a_test.token", lambda: token, raising=False)
    with pytest.raises(error, match=text):
        FunctionTokenProvider(TokenFunction("tokens_of_a_test:token")).token()


def test_a_time_of_a_function_may_be_a_float(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokens_of_a_test", ModuleType("tokens_of_a_test"))
    found = Token("abc", LATER_MS + 0.5)  # type: ignore[arg-type]
    monkeypatch.setattr("tokens_of_a_test.token", lambda: found, raising=False)
    token = FunctionTokenProvider(TokenFunction("tokens_of_a_test:token")).token()
    assert (type(token.expires_ms), token.expires_ms) == (int, LATER_MS)
