"""Run a query with dead letters to its end, and start it again whenever it fails.

The argument is a file of JSON; ``tests.soak.test_letter_kills`` writes it.
"""

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException

from verification.soak.session import session, settings_in

MAX_STARTS = 12
CLIENTS = ("kafka-python", "confluent")
"""The clients that read and write letters, in turns."""


def main(path: Path) -> None:
    config = settings_in(path)
    # A task that fails is not tried again: the query fails, and runs its batch again.
    spark = session(path.parent, "local[2,1]")
    for number in range(1, MAX_STARTS + 1):
        query = (
            spark.readStream.format("pyspark_kafka")
            .options(**config["read"], client=CLIENTS[number % len(CLIENTS)])
            .load()
            .selectExpr("cast(value.number as string) as value")
            .writeStream.format("pyspark_kafka")
            .options(**config["write"])
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException:
            continue
        print(f"starts: {number}", flush=True)
        return
    raise AssertionError("the query did not come to its end")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
