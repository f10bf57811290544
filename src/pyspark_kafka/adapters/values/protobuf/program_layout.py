"""The tables by which the kernel interprets a message: numbers of 64 bits, at addresses.

A *node* is a message at one place of the wanted type. Its tags lead to *actions*: what to do with
a field of that number and wire type. Its *closing steps* run when the message has ended: they
close lists, put defaults, and close the structs of singular messages below it, which may be
given in parts (Protobuf merges them). A *slot* is a number that lives as long as a message: whether
a singular message was given, the parts of a timestamp, which field of a oneof was set last.

Offsets are in bytes.
"""

from __future__ import annotations

from typing import Final

# Nodes.
NODE_STRIDE: Final = 64
TAGS: Final = 0
"""The address of 32-bit numbers of actions by tag, -1 where there is none."""
TAG_COUNT: Final = 8
LARGE_TAGS: Final = 16
"""The address of the tags that are not below ``TAG_COUNT``, ascending, each with its action."""
LARGE_COUNT: Final = 24
STEPS: Final = 32
"""The address of the closing steps; 0 for a singular message, which its parent closes."""
STEP_COUNT: Final = 40
CELLS: Final = 48
"""How many values one such message puts at the least."""

# Actions.
ACTION_STRIDE: Final = 96
ACTION: Final = 0
COLUMN: Final = 8
"""The column of the values: of a repeated field, of its elements; -1 for a field not wanted."""
FLAGS: Final = 16
CONVERT: Final = 24
STORE: Final = 32
ENUM: Final = 40
"""The address of an enum's table."""
NODE: Final = 48
"""The address of a message's node."""
SLOT: Final = 56
"""The first slot of a message or of an unwanted required field, or -1."""
SLOT_END: Final = 64
ONEOF: Final = 72
"""The slot of the oneof that the field is in, or -1."""
WIRE: Final = 80
"""The wire type of packed elements."""

SKIP: Final = 0
SCALAR: Final = 1
PACKED: Final = 2
BYTES: Final = 3
MESSAGE: Final = 4
MISMATCH: Final = 5
"""A field of the outermost message with another wire type."""
SECONDS: Final = 6
NANOS: Final = 7

REPEATED: Final = 1
IMPLICIT: Final = 2
"""Zero is as good as absent (proto3 without ``optional``)."""
STRICT: Final = 4
"""A string that must be UTF-8."""
LOOSE: Final = 8
"""A string whose invalid UTF-8 is replaced."""
OUTERMOST: Final = 16
"""An unknown number of a closed enum is an error."""
DELIMITED: Final = 32
"""A group."""
MERGED: Final = 64
"""Bytes of a message: of one that is given in parts, the parts follow each other."""

# How a number on the wire becomes a value.
AS_IS: Final = 0
LOW_32: Final = 1
UNSIGNED_32: Final = 2
ZIGZAG_32: Final = 3
ZIGZAG_64: Final = 4
TRUTH: Final = 5
KNOWN_ENUM: Final = 6
"""The number of a closed enum."""
ENUM_NAME: Final = 7

# How it is stored.
BITS_8: Final = 0
BITS_32: Final = 1
BITS_64: Final = 2
DECIMAL: Final = 3
TEXT: Final = 4

# Enums: a header, and for each number, ascending: number, address and length of its name.
ENUM_COUNT: Final = 0
ENUM_CLOSED: Final = 8
ENUM_PREFIX: Final = 16
"""The address of the text before an unknown number."""
ENUM_PREFIX_SIZE: Final = 24
ENUM_VALUES: Final = 32
ENUM_STRIDE: Final = 24
MAX_DIGITS: Final = 11
"""The characters of a 32-bit number."""

# Closing steps.
STEP_STRIDE: Final = 48
STEP: Final = 0
STEP_COLUMN: Final = 8
STEP_SLOT: Final = 16
STEP_VALUE: Final = 24
"""A default's bits or its address; how many steps to leave out."""
STEP_SIZE: Final = 32
STEP_STORE: Final = 40

CLOSE_LIST: Final = 0
CLOSE_MAP: Final = 1
CLOSE_STRUCT: Final = 2
BEGIN_MESSAGE: Final = 3
"""Leave out the steps of a message that was not given."""
PUT_DEFAULT: Final = 4
PUT_DEFAULT_BYTES: Final = 5
PUT_TIME: Final = 6
NULL_ELEMENT: Final = 7
"""The value of a wrapper that is an element and has none."""
REQUIRE_VALUE: Final = 8
REQUIRE_SLOT: Final = 9
CLEAR_SLOT: Final = 10
DROP_ENTRY: Final = 11
"""Leave out a map's entry whose enum is unknown."""

# The state of a call.
ROW: Final = 0
FULL_COLUMN: Final = 8
"""The column without room, or -1."""
FULL_BYTES: Final = 16
CELLS_LEFT: Final = 24
"""How many more elements the rows of the batch may have; negative when they have too many."""
MARKS: Final = 32
"""The address of a number for each column: what is to be repaired in it."""
SLOTS: Final = 40
SLOT_COUNT: Final = 48
STACK: Final = 56
PROGRAM: Final = 64
"""The address of the outermost message's node."""
ACTIONS: Final = 72
COUNT: Final = 80
STATE_WORDS: Final = 11

INVALID_UTF8: Final = 1
DUPLICATE_KEYS: Final = 2

MAX_DEPTH: Final = 100
"""The nesting of messages and groups (``kUpb_WireFormat_DefaultDepthLimit``)."""
FRAME: Final = 32
"""The bytes of a message on the stack: node, end, first row, group."""
STACK_WORDS: Final = (MAX_DEPTH + 2) * FRAME // 8
