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

from ..columns import decoding

# Nodes.
NODE_STRIDE: Final = 64
TAGS, TAG_COUNT, LARGE_TAGS, LARGE_COUNT, STEPS, STEP_COUNT, CELLS = range(0, 56, 8)
"""The addresses of 32-bit numbers of actions by tag, -1 where there is none; of the tags that are
not below ``TAG_COUNT``, ascending, each with its action; and of the closing steps; a singular
message has none, since its parent closes it. ``CELLS`` is how many values one such message puts at
the least."""

# Actions.
ACTION_STRIDE: Final = 96
ACTION, COLUMN, FLAGS, CONVERT, STORE, ENUM, NODE, SLOT, SLOT_END = range(0, 72, 8)
ONEOF, WIRE = 72, 80
"""The parts of an action:

- The column of the values: of a repeated field, of its elements; -1 for a field not wanted.
- The addresses of an enum's table and of a message's node.
- The first slot of a message or of an unwanted required field, or -1, and the end of its slots.
- The slot of the oneof that the field is in, or -1, and the wire type of packed elements.
"""

SKIP, SCALAR, PACKED, BYTES, MESSAGE, MISMATCH, SECONDS, NANOS = range(8)
"""A mismatch is a field of the outermost message with another wire type."""

REPEATED, IMPLICIT, STRICT, LOOSE, OUTERMOST, DELIMITED, MERGED = (1 << bit for bit in range(7))
"""The flags:

- ``IMPLICIT``: zero is as good as absent (proto3 without ``optional``).
- ``STRICT``: a string must be UTF-8; ``LOOSE``: what is not is replaced.
- ``OUTERMOST``: an unknown number of a closed enum is an error.
- ``DELIMITED``: a group.
- ``MERGED``: bytes of a message; of one that is given in parts, the parts follow each other.
"""

AS_IS, LOW_32, UNSIGNED_32, ZIGZAG_32, ZIGZAG_64, TRUTH, KNOWN_ENUM, ENUM_NAME = range(8)
"""How a number on the wire becomes a value; a known enum is the number of a closed one."""

BITS_8, BITS_32, BITS_64, DECIMAL, TEXT = range(5)
"""How it is stored."""

# Enums: a header, and for each number, ascending: number, address and length of its name.
ENUM_COUNT, ENUM_CLOSED, ENUM_PREFIX, ENUM_PREFIX_SIZE, ENUM_VALUES = range(0, 40, 8)
"""The prefix is the address of the text before an unknown number."""

ENUM_STRIDE: Final = 24
MAX_DIGITS: Final = 11
"""The characters of a 32-bit number."""

# Closing steps.
STEP_STRIDE: Final = 48
STEP, STEP_COLUMN, STEP_SLOT, STEP_VALUE, STEP_SIZE, STEP_STORE = range(0, STEP_STRIDE, 8)
"""The value is a default's bits or its address, or how many steps to leave out."""

CLOSE_LIST, CLOSE_MAP, CLOSE_STRUCT, BEGIN_MESSAGE, PUT_DEFAULT, PUT_DEFAULT_BYTES = range(6)
PUT_TIME, NULL_ELEMENT, REQUIRE_VALUE, REQUIRE_SLOT, CLEAR_SLOT, DROP_ENTRY = range(6, 12)
"""``BEGIN_MESSAGE`` leaves out the steps of a message that was not given, ``NULL_ELEMENT`` is the
value of a wrapper that is an element and has none, and ``DROP_ENTRY`` leaves out a map's entry
whose enum is unknown."""

WORDS: Final = decoding.HEAD_BYTES // 8 + 7
CELLS_LEFT, MARKS, SLOTS, SLOT_COUNT, STACK, PROGRAM, ACTIONS = range(
    decoding.HEAD_BYTES, 8 * WORDS, 8
)
"""The words behind those of each decoder:

- How many more elements the rows of the batch may have; negative when they have too many.
- The addresses of a number for each column, the repairs that it needs; of the slots; of the stack;
  and of the outermost message's node.
"""

INVALID_UTF8: Final = 1
DUPLICATE_KEYS: Final = 2

MAX_DEPTH: Final = 100
"""The nesting of messages and groups (``kUpb_WireFormat_DefaultDepthLimit``)."""
FRAME: Final = 32
"""The bytes of a message on the stack: node, end, first row, group."""
STACK_WORDS: Final = (MAX_DEPTH + 2) * FRAME // 8
