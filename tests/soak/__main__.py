"""Kill brokers, workers and drivers under load, round after round, and look for every record.

    python -m tests.soak --rounds 20 --seed 1
    python -m tests.soak --queries exactly-once-kafka-python --log build/soak.log
    python -m tests.soak --continuous --faults 'stopped worker woken'
    python -m tests.soak --secured --minutes 5 --logins GSSAPI OAUTHBEARER

Each round is a line of JSON. A round that fails ends the run, and says what was done when. With
``--continuous`` the queries are continuous ones, and each round has one fault. With ``--secured``
nothing is killed: queries log in, and sessions of 10 s, tokens and tickets of 60 s end under them.
"""

from __future__ import annotations

import argparse
import random
import sys
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from pyspark_kafka.brokers import KafkaCluster

from ..servers.secured import MECHANISMS, run_secured
from .continuous_soak import CONTINUOUS_QUERIES, ContinuousSoak
from .faults import FAULTS
from .numbers import SoakError
from .secured_soak import SECURED_QUERIES, SecuredSoak
from .soak import BROKERS, QUERIES, Soak


def main() -> int:
    """Run the command."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--seed", type=int, default=None, help="what is killed when")
    options.add_argument("--continuous", action="store_true", help="soak continuous queries")
    options.add_argument("--queries", nargs="+", help="such as at-least-once-confluent")
    options.add_argument(
        "--faults", nargs="+", choices=[fault.name for fault in FAULTS], help="of continuous ones"
    )
    options.add_argument("--secured", action="store_true", help="soak queries that log in")
    options.add_argument("--minutes", type=float, default=5.0, help="of queries that log in")
    options.add_argument("--logins", nargs="+", choices=MECHANISMS, default=_logins())
    options.add_argument("--log", type=Path, default=Path("build/soak.log"))
    chosen = options.parse_args()
    named = {query.name: query for query in (CONTINUOUS_QUERIES if chosen.continuous else QUERIES)}
    if unknown := set(chosen.queries or ()) - named.keys():
        options.error(f"unknown queries: {sorted(unknown)}, not of {sorted(named)}")
    queries = [named[name] for name in chosen.queries or named]
    faults = [fault for fault in FAULTS if fault.name in (chosen.faults or fault.name)]
    seed = random.randrange(1 << 32) if chosen.seed is None else chosen.seed  # noqa: S311
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    with chosen.log.open("a") as log, ExitStack() as stack:

        def say(line: str) -> None:
            for output in (log, sys.stdout):
                output.write(f"{line}\n")
                output.flush()

        if chosen.secured:
            secured = [each for each in SECURED_QUERIES if each.login in chosen.logins]
            broker = stack.enter_context(run_secured())
            run = partial(
                stack.enter_context(SecuredSoak(broker, secured, say)).run, chosen.minutes
            )
        else:
            cluster = stack.enter_context(KafkaCluster(BROKERS))
            soak: Soak | ContinuousSoak
            if chosen.continuous:
                soak = stack.enter_context(ContinuousSoak(cluster, queries, seed, say, faults))
            else:
                soak = stack.enter_context(Soak(cluster, queries, seed, say))
            run = partial(soak.run, chosen.rounds)
        try:
            run()
        except SoakError as error:
            say(f"seed {seed}: {error}")
            raise SystemExit(1) from None
    return 0


def _logins() -> list[str]:
    """Return the mechanisms that this machine can use."""
    return [each for each in MECHANISMS if each != "GSSAPI" or find_spec("gssapi") is not None]


if __name__ == "__main__":
    sys.exit(main())
