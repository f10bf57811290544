"""Kill brokers, workers and drivers under load, round after round, and look for every record.

    python -m verification.soak --rounds 20 --seed 1
    python -m verification.soak --queries exactly-once-kafka-python --log build/soak.log
    python -m verification.soak --continuous --faults 'stopped worker woken'
    python -m verification.soak --secured --minutes 5 --logins GSSAPI OAUTHBEARER
    python -m verification.soak --hostile --rounds 20 --seed 7 --faults 'black hole' --keep-going
    python -m verification.soak --hostile --storages s3 hdfs 'small disk' --faults 's3 fails'
    python -m verification.soak --hostile --kafka 3.9.1 --faults 'brokers upgraded' --rounds 1
    python -m verification.soak --hostile continuous --racks --faults 'near replica behind'
    python -m verification.soak --write-stage --rounds 40 --seed 3 --first 10 --keep-going

Each round is a line of JSON. A round that fails ends the run, and says what was done when. With
``--continuous`` the queries are continuous ones, and each round has one fault: every second round
strikes brokers while slow functions work off a backlog. With ``--secured``
nothing is killed: queries log in, and sessions of 10 s, tokens and tickets of 60 s end under them.
With ``--hostile``, networks and brokers fail under readers and writers that outlive all rounds, and
each round has a fault or two. With ``--racks``, they read from the replicas of one broker (KIP-392)
instead of the leaders'. Checkpoints are in each of the storages in turn. Faults that this
machine or these brokers cannot have are left out; ``python -m tests.servers.faketime`` downloads
what clocks need. With ``--write-stage``, executors are lost while they write a micro-batch.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from itertools import count, takewhile
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

from pyspark_kafka.adapters.racks.environment import VARIABLE
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.jars import KAFKA_VERSION
from tests.servers.listeners import rack_of
from tests.servers.proxied import run_proxied
from tests.servers.secured import MECHANISMS, run_secured
from tests.slowness import bound_s
from tests.spark_home import make_spark_home

from .continuous_driver import THREADS
from .continuous_soak import CONTINUOUS_QUERIES, ContinuousSoak
from .faults import FAULTS
from .hostile.broker_faults import NEAR, RACKS
from .hostile.checkpoints import STORAGES, run_checkpoints
from .hostile.hostile_soak import (
    CONTINUOUS,
    CONTINUOUS_HOSTILE_QUERIES,
    HOSTILE_QUERIES,
    SPARK,
    HostileSettings,
    HostileSoak,
)
from .hostile.registry import FAULTS as HOSTILE_FAULTS
from .hostile.topic_faults import CLEANING
from .numbers import SoakError
from .secured_soak import SECURED_QUERIES, SecuredSoak
from .soak import BROKERS, QUERIES, Soak
from .write_stage_soak import BROKER_CONFIG, WriteStageSoak

Say: TypeAlias = "Callable[[str], None]"


class _Named(Protocol):
    @property
    def name(self) -> str: ...


NamedT = TypeVar("NamedT", bound=_Named)

_ROUNDS: Final = 20
_MINUTES: Final = 5.0
_DRIVER_EVENT_S: Final = bound_s(400)
"""More than the five minutes for which a refused login is remembered."""

_CONTINUOUS_BACKLOG: Final = 200_000
"""So many that a response has more than some polls return."""


def main() -> int:
    options = _options()
    chosen = options.parse_args()
    if chosen.seed is None:
        chosen.seed = random.randrange(1 << 32)  # noqa: S311
    run = next(run for name, run in _RUNS.items() if name == "kills" or vars(chosen)[name])
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    with chosen.log.open("a") as log, ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-spark-"))
        os.environ["SPARK_HOME"] = str(make_spark_home(Path(home)))

        def say(line: str) -> None:
            for output in (log, sys.stdout):
                output.write(f"{line}\n")
                output.flush()

        try:
            run(chosen, stack, say)
        except SoakError as error:
            say(f"seed {chosen.seed}: {error}")
            raise SystemExit(1) from None
        except LookupError as error:
            options.error(str(error))
    return 0


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, help=f"{_ROUNDS}, unless there are minutes")
    options.add_argument("--seed", type=int, default=None, help="what is killed when")
    kinds = options.add_mutually_exclusive_group()
    kinds.add_argument("--continuous", action="store_true", help="soak continuous queries")
    kinds.add_argument("--secured", action="store_true", help="soak queries that log in")
    kinds.add_argument(
        "--hostile",
        nargs="?",
        const=THREADS,
        choices=(THREADS, SPARK, CONTINUOUS),
        help=f"let networks and brokers fail under micro-batches in {THREADS} or {SPARK}, "
        f"or under {CONTINUOUS} queries",
    )
    kinds.add_argument("--write-stage", action="store_true", help="lose executors that write")
    options.add_argument("--first", type=int, default=0, help="number of the rounds")
    options.add_argument("--queries", nargs="+", help="such as at-least-once-confluent")
    options.add_argument("--faults", nargs="+", help="of continuous and hostile soaks")
    options.add_argument(
        "--racks", action="store_true", help="hostile soaks: read from replicas in one rack"
    )
    options.add_argument(
        "--storages", nargs="+", choices=STORAGES, default=(), help="hostile soaks: of checkpoints"
    )
    options.add_argument("--kafka", default=KAFKA_VERSION, help="hostile soaks: brokers' version")
    options.add_argument(
        "--keep-going",
        action="store_true",
        help="after a round failed, hostile or of a write stage",
    )
    options.add_argument(
        "--minutes", type=float, help=f"of hostile soaks, and of logins: {_MINUTES:g}"
    )
    options.add_argument("--logins", nargs="+", choices=MECHANISMS, default=_logins())
    options.add_argument("--log", type=Path, default=Path("build/soak.log"))
    return options


def _run_kills(chosen: argparse.Namespace, stack: ExitStack, say: Say) -> None:
    queries = _named(chosen.queries, QUERIES)
    cluster = stack.enter_context(KafkaCluster(BROKERS))
    stack.enter_context(Soak(cluster, queries, chosen.seed, say)).run(_rounds(chosen))


def _run_continuous(chosen: argparse.Namespace, stack: ExitStack, say: Say) -> None:
    queries = _named(chosen.queries, CONTINUOUS_QUERIES)
    faults = _named(chosen.faults, FAULTS)
    cluster = stack.enter_context(KafkaCluster(BROKERS))
    soak = stack.enter_context(ContinuousSoak(cluster, queries, chosen.seed, say, faults))
    soak.run(_rounds(chosen))


def _run_logins(chosen: argparse.Namespace, stack: ExitStack, say: Say) -> None:
    queries = [each for each in SECURED_QUERIES if each.login in chosen.logins]
    broker = stack.enter_context(run_secured())
    minutes = chosen.minutes or _MINUTES
    stack.enter_context(SecuredSoak(broker, queries, say, minutes)).run_round(0)


def _run_hostile(chosen: argparse.Namespace, stack: ExitStack, say: Say) -> None:
    is_continuous = chosen.hostile == CONTINUOUS
    known = CONTINUOUS_HOSTILE_QUERIES if is_continuous else HOSTILE_QUERIES
    queries = _named(chosen.queries, known)
    faults = _named(chosen.faults, HOSTILE_FAULTS)
    settings = HostileSettings(queries=chosen.hostile)
    if chosen.hostile != THREADS:
        settings = replace(settings, event_s=_DRIVER_EVENT_S)
    if is_continuous:
        settings = replace(settings, backlog=_CONTINUOUS_BACKLOG)
    if chosen.racks:
        queries = [replace(query, in_own_rack=True) for query in queries]
        os.environ[VARIABLE] = rack_of(NEAR)
    config = CLEANING | (RACKS if chosen.racks else {})
    proxied = stack.enter_context(run_proxied(BROKERS, config, chosen.kafka))
    checkpoints = stack.enter_context(run_checkpoints(chosen.storages, chosen.seed))
    soak = HostileSoak(proxied, queries, chosen.seed, say, faults, settings, checkpoints)
    stack.enter_context(soak).run(_rounds(chosen), goes_on=chosen.keep_going)


def _run_write_stage(chosen: argparse.Namespace, stack: ExitStack, say: Say) -> None:
    cluster = stack.enter_context(KafkaCluster(BROKERS, config=BROKER_CONFIG))
    soak = stack.enter_context(WriteStageSoak(cluster, chosen.seed, say))
    soak.run(_rounds(chosen), goes_on=chosen.keep_going)


def _rounds(chosen: argparse.Namespace) -> Iterable[int]:
    """Return the numbers of rounds: so many, or as many as begin within some minutes."""
    if chosen.minutes and not chosen.rounds:
        ends_at = time.monotonic() + 60 * chosen.minutes
        return takewhile(lambda _: time.monotonic() < ends_at, count(chosen.first))
    return range(chosen.first, chosen.first + (chosen.rounds or _ROUNDS))


def _named(wanted: Sequence[str] | None, known: Sequence[NamedT]) -> list[NamedT]:
    """Return what has some names, or all without names; raise if a name does not exist."""
    named = {each.name: each for each in known}
    if unknown := set(wanted or ()) - named.keys():
        raise LookupError(f"unknown: {sorted(unknown)}, not of {sorted(named)}")
    return [named[name] for name in wanted or named]


def _logins() -> list[str]:
    """Return the mechanisms that this machine can use."""
    return [each for each in MECHANISMS if each != "GSSAPI" or find_spec("gssapi") is not None]


_RUNS: Final = {
    "continuous": _run_continuous,
    "secured": _run_logins,
    "hostile": _run_hostile,
    "write_stage": _run_write_stage,
    "kills": _run_kills,
}
"""How to run each kind of soak; the last one without an option."""


if __name__ == "__main__":
    sys.exit(main())
