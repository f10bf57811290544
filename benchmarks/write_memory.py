"""The peak memory of writers, for a small and a large number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.bootstrap.container import sink_container_for
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options

from .bench import CLIENTS
from .fresh_process import on_all_cores
from .memory import own_peak, size_text
from .results import MEGABYTES, Comparison, Samples, Section
from .rows import batches
from .topics import KB10_PADDED

if TYPE_CHECKING:
    from .bench import Bench

BATCH_ROWS: Final = 1_000
"""Rows of a batch of about 10 MB, as Spark passes them."""

ABOUT: Final = (
    f"The peak resident memory (`VmHWM`) of a fresh process that writes with a `RecordWriter`, "
    f"including Python, Arrow, the client and the rows. The values have "
    f"{KB10_PADDED.value_bytes:,} B and are compressed with {KB10_PADDED.compression}."
)


def measure_write_memory(bench: Bench) -> Section:
    """Measure each client's memory for writes of each size."""
    return Section(
        "write-memory",
        "Peak memory of writes",
        ABOUT,
        MEGABYTES,
        tuple(_compare(bench, size) for size in bench.plan.memory_bytes),
    )


def _compare(bench: Bench, size: int) -> Comparison:
    samples = []
    for client in CLIENTS:
        topic = f"memory-{client}-{size}"
        bench.kafka.create_topic(topic)
        servers = bench.kafka.bootstrap_servers
        peak = on_all_cores(peak_of_write, servers, client, topic, size)
        samples.append(Samples(client, (peak,)))
        bench.kafka.delete_topic(topic)
    return Comparison(f"values of {size_text(size)}", tuple(samples))


def peak_of_write(bootstrap_servers: str, client: str, topic: str, size: int) -> float:
    """Return this process's peak memory after writing ``size`` bytes of values."""
    given = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "client": client,
        "kafka.compression.type": KB10_PADDED.compression,
    }
    [batch] = batches(KB10_PADDED, 0, BATCH_ROWS)
    count = size // (KB10_PADDED.value_bytes * BATCH_ROWS)
    container = sink_container_for(parse_sink_options(given, QueryKind.BATCH))
    writer = container.record_writer()
    for _ in range(count):
        writer.write(batch, topic)
    delivered = writer.flush()
    container.shutdown_resources()
    if delivered.records != count * BATCH_ROWS:
        raise RuntimeError(f"{client} wrote {delivered.records} of {count * BATCH_ROWS} records")
    return own_peak()
