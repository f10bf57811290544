"""Reading a setting that is one of a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kafka_settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable


def choice(name: str, value: str, choices: Iterable[str]) -> str:
    """Give the word in its own spelling; Java reads it in any case.

    :raises ValueError: if it is none of them, naming the setting.
    """
    for word in choices:
        if value.lower() == word.lower():
            return word
    known = ", ".join(choices)
    raise ValueError(f"Option '{PREFIX}{name}' must be one of {known}, got '{value}'")
