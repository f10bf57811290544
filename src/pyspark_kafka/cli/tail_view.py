"""Records as lines of text, and as JSON."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from ..domain.json_text import utc_text
from ..domain.text import Rendering, printable, render

if TYPE_CHECKING:
    from collections.abc import Mapping


def record_line(row: Mapping[str, Any], rendering: Rendering) -> str:
    """Return a record as one line: its time, place, key and value."""
    found = _record(row, rendering)
    place = f"{row['topic']}-{row['partition']} @ {row['offset']}"
    problem = f"  ({found['error']})" if "error" in found else ""
    cells = (found["timestamp"], place, _text(found["key"]), _text(found["value"]))
    return "  ".join(printable(cell) for cell in cells) + problem


def record_json(row: Mapping[str, Any], rendering: Rendering) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(_record(row, rendering), default=_other)


def _record(row: Mapping[str, Any], rendering: Rendering) -> dict[str, Any]:
    key_rendering = Rendering.HEX if rendering is Rendering.HEX else Rendering.TEXT
    key, _ = _shown(row, "key", key_rendering)
    value, problem = _shown(row, "value", rendering)
    record = {
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
        "timestamp": utc_text(row["timestamp"]),
        "key": key,
        "value": value,
        "headers": [
            {"key": each["key"], "value": render(each["value"], key_rendering)[0]}
            for each in row["headers"] or ()
        ],
    }
    return record | {"error": problem} if problem else record


def _shown(row: Mapping[str, Any], column: str, rendering: Rendering) -> tuple[Any, str]:
    """Return a key or value, and what is wrong with it; what was decoded stays as it is."""
    failed: bytes | None = row.get(f"{column}Bytes")
    if failed is not None:
        return render(failed, Rendering.TEXT)[0], printable(row[f"{column}Error"])
    data = row[column]
    is_decoded = data is not None and not isinstance(data, bytes)
    return (data, "") if is_decoded else render(data, rendering)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=_other)


def _other(value: object) -> str:
    """Return what JSON has no type for: bytes as base64, numbers and times as text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
