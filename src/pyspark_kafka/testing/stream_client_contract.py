"""The contract suite of ``StreamClient``."""

from __future__ import annotations

from .stream_reading_contract import StreamReadingContract
from .stream_transactions_contract import StreamTransactionsContract
from .stream_writing_contract import StreamWritingContract


class StreamClientContract(
    StreamReadingContract, StreamWritingContract, StreamTransactionsContract
):
    """The contract of ``StreamClient``; a subclass overrides the fixture ``world``."""
