"""Topics in files of newline-delimited JSON, as a client of pyspark-kafka."""

from typing import Final

from pyspark_kafka.ports.client import Client

from .offset_fetcher import JournalOffsetFetcher
from .record_reader import JournalRecordReader

CLIENT: Final = Client(JournalOffsetFetcher, JournalRecordReader)
