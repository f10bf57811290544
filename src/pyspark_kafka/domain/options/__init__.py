"""The options of sources and sinks: their tables, their values and the parsers."""

from .dead_letter_sink import dead_letter_sink
from .option import Option, QueryKind
from .parsed import check_parsed
from .parsing import ignored_options, parse_any_source_options, parse_source_options, with_any_topic
from .policy import DEFAULT_POLICY, UNRESTRICTED, OptionPolicy, allowing, disallowing
from .sink_options import DeliveryGuarantee, SinkOptions
from .sink_parsing import ignored_sink_options, parse_sink_options
from .sink_table import TABLE as SINK_TABLE
from .source_options import SourceOptions
from .table import TABLE

__all__ = [
    "DEFAULT_POLICY",
    "SINK_TABLE",
    "TABLE",
    "UNRESTRICTED",
    "DeliveryGuarantee",
    "Option",
    "OptionPolicy",
    "QueryKind",
    "SinkOptions",
    "SourceOptions",
    "allowing",
    "check_parsed",
    "dead_letter_sink",
    "disallowing",
    "ignored_options",
    "ignored_sink_options",
    "parse_any_source_options",
    "parse_sink_options",
    "parse_source_options",
    "with_any_topic",
]
