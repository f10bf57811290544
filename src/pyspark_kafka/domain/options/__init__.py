"""The options of a query: a table of all, the values, and the way from text to them."""

from .option import Option, Query
from .parsing import ignored_options, parse_projection, parse_source_options
from .source_options import SourceOptions
from .table import TABLE

__all__ = [
    "TABLE",
    "Option",
    "Query",
    "SourceOptions",
    "ignored_options",
    "parse_projection",
    "parse_source_options",
]
