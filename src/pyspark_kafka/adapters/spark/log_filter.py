"""Filters that keep secrets out of the logs of Spark's driver at level DEBUG."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final, final

from pyspark.errors import PySparkException

from ...domain.security.secrets import SENSITIVE_NAMES, SENSITIVE_VALUES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("pyspark_kafka")

SENSITIVE: Final = f"(?i:{SENSITIVE_NAMES}|{SENSITIVE_VALUES})"
"""A pattern, for Python and for Java, of texts that may show a secret."""

STATEMENTS: Final = (
    f'(?i:key: ".*(?:{SENSITIVE_NAMES}).*[^a-z]+value: .*'
    f'|(?:value|query|sql): ".*(?:{SENSITIVE_NAMES}|{SENSITIVE_VALUES}).*)'
)
"""A pattern, for Java, of texts that may show a secret in a statement of Spark Connect.

Statements are protocol buffers as text, with one field on a line. The pattern has no backslash,
which ``spark-defaults.conf`` would need twice.
"""

STRING_REDACTION: Final = "spark.sql.redaction.string.regex"
"""Texts that Spark hides. A session may set it; the default is the server's, without ``sql``."""

_UNDEFINED: Final = "<undefined>"

_PY4J: Final = ("py4j.clientserver", "py4j.java_gateway")

_SENSITIVE: Final = re.compile(SENSITIVE)
_BYTES: Final = re.compile(r"^j[A-Za-z0-9+/=]+$", re.MULTILINE)
"""Bytes as Py4J sends them: pickled functions, with the options of their query."""

_ANSWER: Final = re.compile(r"(Answer received: !ys).*", re.DOTALL)
"""A text of the JVM's: the value of an option, without its name."""

_SQL_PARSER: Final = "org.apache.spark.sql.execution.SparkSqlParser"


def hide_secrets(spark: SparkSession) -> None:
    """Keep secrets out of the logs of Py4J and of Spark's SQL parser.

    Py4J logs each call at level DEBUG, also those that pass options. The parser logs statements,
    such as ``CREATE TEMPORARY VIEW ... OPTIONS (...)``.
    """
    for name in _PY4J:
        logging.getLogger(name).addFilter(_FILTER)
    try:
        log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001
        log4j.core.config.Configurator.setLevel(_SQL_PARSER, log4j.Level.WARN)
    except Exception:
        log.debug("Cannot set the level of %s: no Log4j 2", _SQL_PARSER, exc_info=True)


def hide_secrets_of_statements(spark: SparkSession) -> None:
    """Keep secrets out of the UI and the event log of a Spark Connect server, for a session.

    The server's events have each statement as a text, with all options: ``spark.redaction.regex``
    does not apply (SparkListenerConnectOperationStarted). A pattern of the server's or of the
    session stays.
    """
    names = (STRING_REDACTION, STRING_REDACTION.replace("sql.", ""))
    try:
        # `conf.get` does not distinguish a hidden value, such as a pattern with "secret", from
        # none.
        found = [spark.sql(f"SET {name}").collect()[0].value for name in names]
        if found == [_UNDEFINED] * 2:
            spark.conf.set(STRING_REDACTION, STATEMENTS)
    except PySparkException:
        # A declarative pipeline raises it, for example.
        log.warning("Cannot set %s: set it on the Spark Connect server", STRING_REDACTION)


@final
class _SecretFilter(logging.Filter):
    """Hides calls that name a secret, and all bytes and texts of answers; drops no record."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if _SENSITIVE.search(text):
            shown = f"{text.partition(':')[0]}: [hidden]"
        else:
            shown = _ANSWER.sub(r"\1[hidden]", _BYTES.sub("j[hidden]", text))
        record.msg, record.args = shown, ()
        return True


_FILTER: Final = _SecretFilter()
