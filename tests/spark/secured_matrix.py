"""Operations that work or are refused, by login and client."""

from itertools import product
from typing import Final

from tests.servers.secured import MECHANISMS

CLIENTS: Final = ("kafka-python", "confluent")

OPERATIONS: Final = ("batch", "stream", "sink", "exactly-once", "lag")
"""Of a Spark query, but for ``lag``: what the command of that name does."""

NO_KERBEROS: Final = "has no GSSAPI provider"
NO_TRANSACTIONS: Final = "which cannot commit transactions that another process began"


def refusal(mechanism: str, client: str, operation: str) -> str | None:
    """Return what an error says that refuses the options; ``None`` if the operation works."""
    if client == "confluent" and mechanism == "GSSAPI":
        return NO_KERBEROS
    if client == "confluent" and operation == "exactly-once":
        return NO_TRANSACTIONS
    return None


HEAD: Final = f"""\
# Logins

`make docs` makes this page from the table of a test, `tests/spark/test_secured_clusters.py`; do not
edit it. The test runs every cell on a real broker with TLS and ACLs, whose sessions end after 10 s.

- **batch**, **stream**: a Spark query reads a topic.
- **sink**: a Spark query writes a topic, at least once.
- **exactly-once**: a stream writes a topic with `deliveryGuarantee=exactly-once`.
- **lag**: how far a query is behind, from its checkpoint.

"refused" is an error of one line about the options, before anything is connected.

| login | client | {" | ".join(OPERATIONS)} |
|---|---|{"---|" * len(OPERATIONS)}
"""

FOOT: Final = """
- The client `confluent` refuses GSSAPI: the librdkafka in its wheel has no Kerberos. With one that
  has it, the client accepts it.
- It refuses exactly-once, since it cannot commit transactions that another process began. A
  micro-batch query may read with `confluent` and write with `kafka-python`.
- GSSAPI with `kafka-python` needs the extra `kerberos`. Without it the options are refused.
- Delegation tokens are SCRAM logins with `tokenauth="true"`; only `kafka-python` takes them.
"""


def logins_page() -> str:
    rows = [
        " | ".join(
            (
                f"| {mechanism}",
                f"`{client}`",
                *("refused" if refusal(mechanism, client, each) else "yes" for each in OPERATIONS),
            )
        )
        + " |\n"
        for mechanism, client in product(MECHANISMS, CLIENTS)
    ]
    return HEAD + "".join(rows) + FOOT
