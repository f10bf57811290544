import base64
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka.adapters.spark.log_filter import SENSITIVE, STATEMENTS, hide_secrets
from pyspark_kafka.adapters.spark.session import redaction
from tests.documents import ROOT

SECRET = "canary-6f1c"  # noqa: S105
COMMAND = "Command to send: c\no12\n"


@pytest.fixture(autouse=True)
def hidden(caplog):
    """Hide secrets where there is no JVM, and log everything."""
    session: Any = SimpleNamespace(_jvm=None)
    with caplog.at_level(logging.DEBUG):
        hide_secrets(session)
        assert "Cannot set the level" in caplog.text
        caplog.clear()
        yield


@pytest.mark.parametrize("logger", ["py4j.clientserver", "py4j.java_gateway"])
@pytest.mark.parametrize(
    "call",
    [
        f"option\nskafka.sasl.password\ns{SECRET}\ne",
        f"option\nsmetadataPath\nss3://key:{SECRET}@bucket/path\ne",
        f"option\nsmine\ns-----BEGIN RSA PRIVATE KEY-----\\n{SECRET}\ne",
        f"sql\nsCREATE TEMPORARY VIEW v OPTIONS (`kafka.ssl.key.pem` '{SECRET}')\nro3\ne",
    ],
)
def test_a_call_that_passes_a_secret_is_hidden(caplog, logger, call):
    logging.getLogger(logger).debug("%s%s", COMMAND, call)
    assert caplog.messages == ["Command to send: [hidden]"]


def test_pickled_functions_are_hidden(caplog):
    """Bytes, which may have the options of a query, are not shown; the rest of the call is."""
    pickled = base64.standard_b64encode(SECRET.encode() * 100).decode()
    logging.getLogger("py4j.clientserver").debug("%scall\nj%s\ne", COMMAND, pickled)
    assert caplog.messages == [f"{COMMAND}call\nj[hidden]\ne"]


def test_texts_of_answers_are_hidden(caplog):
    for answer in (f"!ys{SECRET}\\n{SECRET}", "!yro12"):
        logging.getLogger("py4j.clientserver").debug("Answer received: %s", answer)
    assert caplog.messages == ["Answer received: !ys[hidden]", "Answer received: !yro12"]


def test_other_calls_are_logged(caplog):
    logging.getLogger("py4j.clientserver").debug("%soption\nssubscribe\nst\ne", COMMAND)
    assert caplog.messages == [f"{COMMAND}option\nssubscribe\nst\ne"]


def test_a_session_that_is_asked_for_again_hides_the_same():
    once = redaction("mine")
    assert redaction(once) == once


def test_the_documents_have_the_pattern():
    """A cluster that does not use ``session`` is to set what ``session`` sets."""
    page = (ROOT / "docs" / "connect" / "security.md").read_text()
    assert f"\nspark.redaction.regex  {SENSITIVE}\n" in page
    assert f"\nspark.redaction.string.regex  {STATEMENTS}\n" in page
