"""Kill brokers, workers and drivers under load, round after round, and look for every record.

    python -m tests.soak --rounds 20 --seed 1
    python -m tests.soak --queries exactly-once-kafka-python --log build/soak.log

Each round is a line of JSON. A round that fails ends the run, and says what was killed when.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from pyspark_kafka.brokers import KafkaCluster

from .numbers import SoakError
from .soak import BROKERS, QUERIES, Soak


def main() -> int:
    """Run the command."""
    named = {query.name: query for query in QUERIES}
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--seed", type=int, default=None, help="what is killed when")
    options.add_argument("--queries", nargs="+", choices=named, default=list(named))
    options.add_argument("--log", type=Path, default=Path("build/soak.log"))
    chosen = options.parse_args()
    seed = random.randrange(1 << 32) if chosen.seed is None else chosen.seed  # noqa: S311
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    with chosen.log.open("a") as log:

        def say(line: str) -> None:
            for output in (log, sys.stdout):
                output.write(f"{line}\n")
                output.flush()

        queries = [named[name] for name in chosen.queries]
        with KafkaCluster(BROKERS) as cluster, Soak(cluster, queries, seed, say) as soak:
            try:
                for number in range(chosen.rounds):
                    soak.run_round(number)
                soak.run_to_the_end(chosen.rounds)
            except SoakError as error:
                say(f"seed {seed}: {error}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
