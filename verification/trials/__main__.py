"""Random trials, round after round, each from a seed.

    python -m verification.trials differential --minutes 60 --seed 1
    python -m verification.trials schedules --rounds 300 --seed 1
    python -m verification.trials secrets --minutes 60
    python -m verification.trials values --minutes 60
    python -m verification.trials spark-values --minutes 60
    python -m verification.trials differential --seed 4711 --rounds 1

``differential`` compares random queries with the JVM connector: rows, checkpoints and errors.
``schedules`` does so with schedules of ``verification.simulator source``.
``values`` holds random values of random schemas against fastavro and upb: nested types, evolution,
and both directions. ``spark-values`` holds them against Spark's functions for JSON and Avro.
``secrets`` gives secrets to queries and commands, in right and wrong options, and looks for them in
logs, errors, plans, events, checkpoints, temporary files and arguments. What is found is printed
with its seed, and the exit status is 1; the last line above repeats a round.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pyspark_kafka.brokers import avro_jars, connector_jars
from tests.servers.shared import LocalServers
from tests.servers.tested_kafka import shared_kafka
from tests.spark_home import make_spark_home

from ..soak.session import session
from .differential import Differential
from .secret_trial import SecretTrial
from .simulated_schedules import SimulatedSchedules
from .spark_values import SparkValues
from .value_trial import ValueTrial

_SETTINGS: Final = {
    "spark.jars": ",".join(map(str, connector_jars())),
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
}


def main() -> int:
    """Run the command, and return 1 if something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trial", nargs="?", choices=_TRIALS, default="differential")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, help="instead of minutes")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))  # noqa: S311
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trials-")))
        servers = LocalServers()
        stack.callback(servers.close)
        trial = _TRIALS[chosen.trial](servers, folder, stack)
        deadline = time.monotonic() + 60 * chosen.minutes
        seed, failed = chosen.seed, []
        while seed - chosen.seed < chosen.rounds if chosen.rounds else time.monotonic() < deadline:
            if not trial.run_round(seed):
                failed.append(seed)
            seed += 1
    _say(f"{seed - chosen.seed} rounds from seed {chosen.seed}; found in: {failed}")
    return int(bool(failed))


def _differential(servers: LocalServers, folder: Path, stack: ExitStack) -> Differential:
    os.environ["SPARK_HOME"] = str(make_spark_home(folder / "spark"))
    spark = session(folder, "local[2]", _SETTINGS)
    stack.callback(spark.stop)
    return Differential(spark, shared_kafka(servers.find("kafka")), folder, _say)


def _schedules(servers: LocalServers, folder: Path, stack: ExitStack) -> SimulatedSchedules:
    return SimulatedSchedules(_differential(servers, folder, stack))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _secrets(servers: LocalServers, folder: Path, _: ExitStack) -> SecretTrial:
    return SecretTrial(servers.find("secured"), folder, _say)


def _values(*_: object) -> ValueTrial:
    return ValueTrial(_say)


def _spark_values(_: LocalServers, folder: Path, stack: ExitStack) -> SparkValues:
    jars = ",".join(map(str, avro_jars()))
    spark = session(folder, "local[2]", {**_SETTINGS, "spark.jars": jars})
    stack.callback(spark.stop)
    return SparkValues(spark, _say)


_Trial = Differential | SecretTrial | SimulatedSchedules | SparkValues | ValueTrial

_TRIALS: Final[Mapping[str, Callable[..., _Trial]]] = {
    "differential": _differential,
    "schedules": _schedules,
    "secrets": _secrets,
    "spark-values": _spark_values,
    "values": _values,
}

if __name__ == "__main__":
    sys.exit(main())
