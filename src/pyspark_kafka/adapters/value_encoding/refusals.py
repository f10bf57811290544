"""The reasons for which kernels refuse rows."""

from __future__ import annotations

from typing import Final

NULL: Final = 2
LENGTH: Final = 3
SYMBOL: Final = 4
RANGE: Final = 5
UTF8: Final = 6
ONEOF: Final = 7

TEXTS: Final = {
    NULL: "is null, and the schema does not allow null there",
    LENGTH: "has another number of bytes than the schema's fixed type",
    SYMBOL: "is not a symbol of the schema's enum",
    RANGE: "is out of the range of the schema's type",
    UTF8: "is not valid UTF-8",
    ONEOF: "is not the only one of its oneof that is not null",
}
