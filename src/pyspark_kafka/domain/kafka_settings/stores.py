"""Key stores and trust stores: their formats, and PEM."""

from __future__ import annotations

import enum
import re
import shlex
from typing import TYPE_CHECKING, Final

from .setting import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .values import Store


class StoreFormat(enum.Enum):
    """The format of a store's file, recognised by its content."""

    PEM = "PEM"
    PKCS12 = "PKCS12"


def store_format(store: Store, content: bytes) -> StoreFormat:
    """Return the format of a store.

    :raises ValueError: if it is JKS, with the command that converts it, or unknown.
    """
    if content[:4] in (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"):
        source, target = store.location, f"{store.location.rpartition('.')[0] or 'store'}.p12"
        raise ValueError(
            f"Option '{store.option}': '{source}' is a JKS store, which only Java reads. "
            "Convert it, and set the new file instead: keytool -importkeystore "
            f"-srckeystore {shlex.quote(source)} -destkeystore {shlex.quote(target)} "
            "-deststoretype PKCS12"
        )
    if b"-----BEGIN " in content:
        return StoreFormat.PEM
    if content[:1] == b"\x30":
        return StoreFormat.PKCS12
    raise ValueError(f"Option '{store.option}': '{store.location}' is neither PKCS12 nor PEM")


_PEM_BLOCK: Final = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+(.*?)-+END \1-+", re.DOTALL)


def pem(name: str, text: str) -> str:
    """Return PEM with its canonical lines: Java accepts any white space as a line end.

    :raises ValueError: if the text has no PEM block.
    """
    blocks = "".join(_pem_lines(*found) for found in _PEM_BLOCK.findall(text))
    if not blocks:
        raise ValueError(f"Option '{PREFIX}{name}' must be PEM, as '-----BEGIN ...'")
    return blocks


def _pem_lines(label: str, body: str) -> str:
    # Headers (RFC 1421), as in an old encrypted key, keep their lines.
    if ":" in body:
        content: Iterable[str] = body.strip().splitlines()
    else:
        base64 = "".join(body.split())
        content = (base64[start : start + 64] for start in range(0, len(base64), 64))
    return "\n".join((f"-----BEGIN {label}-----", *content, f"-----END {label}-----", ""))
