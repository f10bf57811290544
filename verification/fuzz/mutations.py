"""Changes to inputs that keep most of their structure."""

import random
import re
from collections.abc import Callable
from typing import Final

from .inputs import mutated
from .parsers import decode_input, encode_input

_TOKEN: Final = re.compile(
    rb'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*|-?[0-9]+(?:\.[0-9]+)?|\s+|.', re.DOTALL
)

_HOSTILE_TOKENS: Final = (
    *(b"-1", b"-2", b"-3", b"0", b"1", b"00", b"32768", b"2147483648", b"9223372036854775807"),
    *(b"9223372036854775808", b"-9223372036854775809", b"1.0", b"1e400", b"9" * 5_000, b"0x1"),
    *(b"NaN", b"Infinity", b"true", b"false", b"null", b'""', b'"\\ud800"', b'"\\u0000"', b'"a"'),
    *(b"[]", b"{}", b"[" * 990, b'{"a":' * 490, b"[" * 400 + b"]" * 400, b"(" * 990),
    *(b"{99999999999}", b"\n", b"\\", b"\xff", b"\xed\xa0\x80", b"\xc2\x85", b"\xe2\x80\xa8"),
    *(b"\x00", b"\xef\xbb\xbf", b",", b";"),
)


def mutate_input(
    data: bytes, max_size: int, dice: random.Random, blind: Callable[[bytes, int], bytes]
) -> bytes:
    """Change what a parser reads, not its name; ``blind`` is libFuzzer's own mutation."""
    name, content = decode_input(data)
    room = max(1, max_size - len(name) - 1)
    match dice.randrange(5):
        case 0 | 1:
            content = blind(content, room)
        case 2 | 3:
            content = mutated_tokens(dice, content)
        case _:
            content = mutated(dice, content)
    return encode_input(name, content[:room])


def mutated_tokens(dice: random.Random, content: bytes) -> bytes:
    """Remove, repeat, replace and exchange words, numbers and texts."""
    tokens = _TOKEN.findall(content) or [b""]
    for _ in range(dice.choice((1, 1, 2, 4))):
        place, other = dice.randrange(len(tokens)), dice.randrange(len(tokens))
        match dice.randrange(5):
            case 0:
                tokens[place] = b""
            case 1:
                tokens[place] *= dice.choice((2, 3))
            case 2:
                tokens[place] = tokens[other]
            case 3:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case _:
                tokens[place] = dice.choice(_HOSTILE_TOKENS)
    return b"".join(tokens)


def spliced(data: bytes, other: bytes, max_size: int, dice: random.Random) -> bytes:
    """Return the beginning of an input and the end of another."""
    name, content = decode_input(data)
    _, second = decode_input(other)
    begin, end = dice.randrange(len(content) + 1), dice.randrange(len(second) + 1)
    return encode_input(name, content[:begin] + second[end:])[:max_size]
